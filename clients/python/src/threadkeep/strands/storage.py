from __future__ import annotations

import builtins
import copy
from collections.abc import Iterator
from contextlib import contextmanager

from strands.storage import Storage
from strands.storage.search import SearchStrategy
from strands.storage.storage import _NAMESPACED, StorageSearchResult, _normalize_key, _normalize_prefix
from strands.types.exceptions import StorageError

from .._adapter import AsyncConnected, AsyncConnection, checked_prefix, namespace_name
from .._dual import delete_request, send_in_batches
from ..aclient import AsyncThreadkeep
from ..errors import ThreadkeepError

KEY_PREFIX = "k:"
"""Prefix of entry keys. Needed because a URL cannot contain the key `.`."""


class ThreadkeepStorage(AsyncConnected, Storage):
    """Stores each key as an entry of up to 1 MiB, for `SnapshotSessionManager` and memory. Entries never expire.

    Keys are normalized like in the framework's storages. They have up to 1,022 bytes and no control characters.
    Storages with different prefixes are separate. Event loops and processes may share a storage. Use a different
    `prefix` for each framework. Without `client`, the storage creates a client, and `close` closes it. All failures
    raise `StorageError`.
    """

    def __init__(
        self,
        prefix: str = "strands",
        *,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        search_strategy: SearchStrategy[ThreadkeepStorage] | None = None,
    ) -> None:
        name = namespace_name(checked_prefix(prefix), "storage")
        self._connection = AsyncConnection(client, base_url, api_key)
        self._entries = self._connection.client.kv(name)
        self._search_strategy = search_strategy
        self._scope = ""

    async def write(self, key: str, data: bytes) -> None:
        """Stores bytes under a key, and notifies the search strategy."""
        normalized = _normalize_key(key)
        with _storage_errors(f"write '{key}'"):
            await self._entries.put(self._name(normalized), data)
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, normalized, data)
            except Exception as error:
                raise StorageError(f"Wrote '{key}' but indexing failed") from error

    async def read(self, key: str) -> bytes | None:
        """Returns the bytes under a key, or None."""
        name = self._name(_normalize_key(key))
        with _storage_errors(f"read '{key}'"):
            entry = await self._entries.get(name)
        return None if entry is None else entry.body

    async def delete(self, key: str) -> None:
        """Deletes a key if it exists."""
        name = self._name(_normalize_key(key))
        with _storage_errors(f"delete '{key}'"):
            await self._entries.delete(name)

    async def list(self, query: str = "") -> builtins.list[str]:
        """Returns the keys that begin with `query`, sorted."""
        prefix = self._name(_normalize_prefix(query))
        start = len(self._name(""))
        with _storage_errors(f"list '{query}'"):
            return [entry.key[start:] async for entry in self._entries.keys(prefix)]

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Returns matching entries, best first. Without a search strategy, reads all entries, and matches by words."""
        if self._search_strategy is not None:
            return await self._search_strategy.search(self, query)
        return await super().search(query)

    def namespace(self, prefix: str) -> ThreadkeepStorage:
        """Returns a view of the keys that begin with `prefix/`. The view shares the client and the search strategy."""
        normalized = _normalize_prefix(prefix).rstrip("/")
        scoped = copy.copy(self)
        scoped._scope = f"{self._scope}{normalized}/" if normalized else self._scope
        scoped._namespaced = _NAMESPACED  # type: ignore[attr-defined]
        return scoped

    async def clear(self) -> None:
        """Deletes all keys of this storage or view."""
        with _storage_errors("clear"):
            if not self._scope:
                await self._entries.clear()
                return
            names = [entry.key async for entry in self._entries.keys(self._name(""))]
            deletions = (delete_request(self._entries._resource, name) for name in names)
            await self._entries._runner.run(send_in_batches(deletions))

    def _name(self, key: str) -> str:
        return f"{KEY_PREFIX}{self._scope}{key}"


@contextmanager
def _storage_errors(action: str) -> Iterator[None]:
    try:
        yield
    except (ThreadkeepError, ValueError) as error:
        raise StorageError(f"Failed to {action}: {error}") from error
