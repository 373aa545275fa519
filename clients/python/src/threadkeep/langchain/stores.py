from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from langchain_core.stores import BaseStore

from .._adapter import checked_prefix, namespace_name
from .._dual import NEVER_EXPIRES, DualAdapter, DualConnection, delete_request, put_request, send_in_batches
from .._flow import Emit, Flow, Items
from .._flows.namespaces import get, get_many, keys
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep
from ._keys import entry_key, entry_prefix, is_truncated, text_of


class ThreadkeepByteStore(DualAdapter, BaseStore[str, bytes]):
    """Stores bytes under keys, which may be any string. One object serves blocking and async callers.

    A key and its value have up to 1 MiB in total. With `ttl_seconds`, a value expires `ttl_seconds` after it was last
    set. Otherwise it never expires. Stores with different prefixes are separate. Use a different `prefix` for each
    framework.
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
        self._resource = self._connection.namespace(namespace_name(checked_prefix(prefix), "bytes", ""))
        self._ttl_seconds = NEVER_EXPIRES if ttl_seconds is None else ttl_seconds

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the values of the keys, in order."""
        return self._connection.run(self._get(keys))

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the values of the keys, in order."""
        return await self._connection.arun(self._get(keys))

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Sets values. Each value is set separately, so a failed call may have set some of the values."""
        self._connection.run(self._set(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Sets values. Each value is set separately, so a failed call may have set some of the values."""
        await self._connection.arun(self._set(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Deletes the keys that exist."""
        self._connection.run(self._delete(keys))

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Deletes the keys that exist."""
        await self._connection.arun(self._delete(keys))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yields the keys that begin with `prefix`, page by page."""
        return self._connection.iterate(self._keys(prefix or ""))

    def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Yields the keys that begin with `prefix`, page by page."""
        return self._connection.aiterate(self._keys(prefix or ""))

    def _get(self, texts: Sequence[str]) -> Flow[list[bytes | None]]:
        entry_keys = [entry_key(text) for text in texts]
        found = yield from get_many(self._resource, entry_keys)
        return [_value(key, found[key].body) if key in found else None for key in entry_keys]

    def _set(self, pairs: Sequence[tuple[str, bytes]]) -> Flow[None]:
        bodies = {}
        for text, value in pairs:
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise TypeError(f"A value must be bytes, not {type(value).__name__}.")
            key = entry_key(text)
            bodies[key] = _body(key, text, bytes(value))
        yield from send_in_batches(
            put_request(self._resource, key, body, ttl_seconds=self._ttl_seconds) for key, body in bodies.items()
        )

    def _delete(self, texts: Sequence[str]) -> Flow[None]:
        yield from send_in_batches(delete_request(self._resource, entry_key(text)) for text in texts)

    def _keys(self, prefix: str) -> Items[str]:
        listed = keys(self._resource, entry_prefix(prefix))
        result: object = None
        while True:
            try:
                step = listed.send(result)
            except StopIteration:
                return
            if not isinstance(step, Emit):
                result = yield step
                continue
            result = None
            text = yield from self._text(step.item.key)
            if text is not None and text.startswith(prefix):
                yield Emit(text)

    def _text(self, key: str) -> Flow[str | None]:
        """Decodes the string in an entry's key. If the string is too long for a key, reads it from the entry."""
        if not is_truncated(key):
            return text_of(key)
        entry = yield from get(self._resource, key)
        return _split(entry.body)[0] if entry else None


def _body(key: str, text: str, value: bytes) -> bytes:
    if not is_truncated(key):
        return value
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:" % len(data) + data + value


def _value(key: str, body: bytes) -> bytes:
    return _split(body)[1] if is_truncated(key) else body


def _split(body: bytes) -> tuple[str, bytes]:
    length, _, rest = body.partition(b":")
    return rest[: int(length)].decode("utf-8", "surrogatepass"), rest[int(length) :]
