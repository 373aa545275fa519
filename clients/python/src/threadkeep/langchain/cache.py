from __future__ import annotations

from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk

from .._adapter import checked_prefix, digest, namespace_name
from .._dual import NEVER_EXPIRES, DualAdapter, DualConnection, put_request
from .._flow import Flow
from .._flows.namespaces import clear, get
from .._json import decode, encode
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep

KINDS = {kind.__name__: kind for kind in (Generation, GenerationChunk, ChatGeneration, ChatGenerationChunk)}


class ThreadkeepCache(DualAdapter, BaseCache):
    """Caches model answers of up to 1 MiB each. One object serves blocking and async callers.

    Answers are stored until the cache is cleared or, with `ttl_seconds`, until they expire. They are stored as JSON,
    and loading them creates only objects of LangChain's core. Use a different `prefix` for each framework.
    """

    def __init__(
        self,
        *,
        client: Threadkeep | AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "langchain",
        ttl_seconds: int | None = None,
    ) -> None:
        self._connection = DualConnection(client, base_url, api_key)
        self._resource = self._connection.namespace(namespace_name(checked_prefix(prefix), "cache", ""))
        self._ttl_seconds = NEVER_EXPIRES if ttl_seconds is None else ttl_seconds

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Returns the cached answer to `prompt` by a model with the settings `llm_string`, or None."""
        return self._connection.run(self._lookup(prompt, llm_string))

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Returns the cached answer to `prompt` by a model with the settings `llm_string`, or None."""
        return await self._connection.arun(self._lookup(prompt, llm_string))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Caches an answer. Raises `TooLarge` if it exceeds 1 MiB, and `TypeError` if JSON cannot represent it."""
        self._connection.run(self._update(prompt, llm_string, return_val))

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Caches an answer. Raises `TooLarge` if it exceeds 1 MiB, and `TypeError` if JSON cannot represent it."""
        await self._connection.arun(self._update(prompt, llm_string, return_val))

    def clear(self, **kwargs: Any) -> None:
        """Deletes all answers."""
        self._connection.run(clear(self._resource))

    async def aclear(self, **kwargs: Any) -> None:
        """Deletes all answers."""
        await self._connection.arun(clear(self._resource))

    def _lookup(self, prompt: str, llm_string: str) -> Flow[RETURN_VAL_TYPE | None]:
        entry = yield from get(self._resource, digest(prompt, llm_string))
        if entry is None:
            return None
        return [_generation(data) for data in decode(entry.body)]

    def _update(self, prompt: str, llm_string: str, answer: RETURN_VAL_TYPE) -> Flow[None]:
        body = encode([_data(generation) for generation in answer])
        key = digest(prompt, llm_string)
        yield put_request(self._resource, key, body, ttl_seconds=self._ttl_seconds, content_type="application/json")


def _data(generation: Generation) -> dict[str, Any]:
    kind = type(generation).__name__
    if kind not in KINDS:
        raise TypeError(f"A cached answer cannot have a {kind}.")
    data = {"kind": kind, "generation_info": generation.generation_info}
    if isinstance(generation, ChatGeneration):
        return {**data, "message": message_to_dict(generation.message)}
    return {**data, "text": generation.text}


def _generation(data: dict[str, Any]) -> Generation:
    kind = KINDS[data.pop("kind")]
    if "message" in data:
        [data["message"]] = messages_from_dict([data["message"]])
    return kind(**data)
