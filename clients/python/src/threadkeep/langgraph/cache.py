from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph.cache.base import BaseCache, FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._adapter import checked_prefix, digest
from .._dual import NEVER_EXPIRES, DualAdapter, DualConnection, collected, delete_request, put_request, send_in_batches
from .._flow import Flow
from .._flows.namespaces import clear, get_many, keys
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep
from ._thread import CACHE, space_name


class ThreadkeepCache(DualAdapter, BaseCache[ValueT]):
    """Caches values of up to 1 MiB. One object serves blocking and async callers, in any thread and event loop.

    Use a different `prefix` for each framework.
    """

    def __init__(
        self,
        *,
        client: Threadkeep | AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "langgraph",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._connection = DualConnection(client, base_url, api_key)
        self._resource = self._connection.namespace(space_name(checked_prefix(prefix), CACHE))

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Returns the cached values by key. Omits other keys."""
        return self._connection.run(self._get(keys))

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Returns the cached values by key. Omits other keys."""
        return await self._connection.arun(self._get(keys))

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Caches values, each with a TTL in seconds or None. Raises `TooLarge` for a value over 1 MiB."""
        self._connection.run(self._set(pairs))

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Caches values, each with a TTL in seconds or None. Raises `TooLarge` for a value over 1 MiB."""
        await self._connection.arun(self._set(pairs))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Deletes the values in `namespaces`, or all values."""
        self._connection.run(self._clear(namespaces))

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Deletes the values in `namespaces`, or all values."""
        await self._connection.arun(self._clear(namespaces))

    def _get(self, full_keys: Sequence[FullKey]) -> Flow[dict[FullKey, ValueT]]:
        found = yield from get_many(self._resource, [_entry_key(*key) for key in full_keys])
        values: dict[FullKey, ValueT] = {}
        for namespace, key in full_keys:
            entry = found.get(_entry_key(namespace, key))
            if entry:
                type, _, data = entry.body.partition(b":")
                values[tuple(namespace), key] = self.serde.loads_typed((type.decode(), data))
        return values

    def _set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> Flow[None]:
        requests = []
        for (namespace, key), (value, ttl) in pairs.items():
            entry_key = _entry_key(namespace, key)
            if ttl is not None and ttl <= 0:
                requests.append(delete_request(self._resource, entry_key))
                continue
            type, data = self.serde.dumps_typed(value)
            body = type.encode() + b":" + data
            ttl_seconds = NEVER_EXPIRES if ttl is None else ttl
            requests.append(put_request(self._resource, entry_key, body, ttl_seconds=ttl_seconds))
        yield from send_in_batches(iter(requests))

    def _clear(self, namespaces: Sequence[Namespace] | None) -> Flow[None]:
        if namespaces is None:
            yield from clear(self._resource)
            return
        for namespace in namespaces:
            found = yield from collected(keys(self._resource, _prefix(namespace)))
            yield from send_in_batches(delete_request(self._resource, info.key) for info in found)


def _entry_key(namespace: Sequence[str], key: str) -> str:
    return _prefix(namespace) + digest(key)


def _prefix(namespace: Sequence[str]) -> str:
    return digest(*namespace) + "/"
