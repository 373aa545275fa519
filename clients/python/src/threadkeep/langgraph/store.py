from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from .._adapter import attempts, checked_prefix, tag_of
from .._dual import NEVER_EXPIRES, DualAdapter, DualConnection, collected, together
from .._flow import Flow
from .._flows.namespaces import delete, entries, get, get_many, keys, put
from .._resource import new_key
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep
from ..errors import VersionMismatch
from ..models import Entry
from ._items import StoredItem, item_key, namespace_in, prefix_of
from ._matching import has_all, is_selected, literal_prefix
from ._thread import STORE, space_name


class ThreadkeepStore(DualAdapter, BaseStore):
    """Stores JSON items of up to 1 MiB. One object serves blocking and async callers, in any thread and event loop.

    Searches do not use vectors, and ignore `query` and the `index` of a put. Results are sorted by namespace label.
    `ttl` sets default TTLs, in minutes. Use a different `prefix` for each framework.
    """

    supports_ttl = True

    def __init__(
        self,
        *,
        client: Threadkeep | AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "langgraph",
        ttl: TTLConfig | None = None,
    ) -> None:
        self._connection = DualConnection(client, base_url, api_key)
        self._resource = self._connection.namespace(space_name(checked_prefix(prefix), STORE))
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Performs all reads, then all puts. Returns results in the order of `ops`. The last put of a key wins."""
        return self._connection.run(self._perform(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Performs operations like `batch`."""
        return await self._connection.arun(self._perform(list(ops)))

    def _perform(self, ops: Sequence[Op]) -> Flow[list[Result]]:
        puts: dict[str, PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[item_key(op.namespace, op.key)] = op
            elif not isinstance(op, (GetOp, SearchOp, ListNamespacesOp)):
                raise ValueError(f"Unknown operation: {type(op)}")
        gets = [item_key(op.namespace, op.key) for op in ops if isinstance(op, GetOp)]
        found = yield from get_many(self._resource, gets)
        results: list[Result] = []
        for op in ops:
            if isinstance(op, GetOp):
                results.append((yield from self._get(op, found)))
            elif isinstance(op, SearchOp):
                results.append((yield from self._search(op)))
            elif isinstance(op, ListNamespacesOp):
                results.append((yield from self._namespaces(op)))
            else:
                results.append(None)
        yield from together([self._put(key, op) for key, op in puts.items()])
        return results

    def _get(self, op: GetOp, found: dict[str, Entry]) -> Flow[Item | None]:
        entry = found.get(item_key(op.namespace, op.key))
        if entry is None:
            return None
        item = StoredItem.unpack(entry.body)
        if op.refresh_ttl:
            yield from self._refresh(entry, item)
        return Item(
            value=item.value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def _search(self, op: SearchOp) -> Flow[list[SearchItem]]:
        end = op.offset + op.limit
        listed = entries(self._resource, prefix_of(op.namespace_prefix), limit=None if op.filter else end)
        matching = yield from collected(
            listed, lambda entry: not op.filter or has_all(StoredItem.unpack(entry.body).value, op.filter), end
        )
        found = [(entry, StoredItem.unpack(entry.body)) for entry in matching[op.offset :]]
        if op.refresh_ttl:
            yield from together([self._refresh(entry, item) for entry, item in found])
        return [
            SearchItem(
                namespace=item.namespace,
                key=item.key,
                value=item.value,
                created_at=item.created_at,
                updated_at=item.updated_at,
            )
            for _, item in found
        ]

    def _namespaces(self, op: ListNamespacesOp) -> Flow[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        found: set[tuple[str, ...]] = set()
        digest_keys: list[str] = []
        for info in (yield from collected(keys(self._resource, prefix_of(literal_prefix(conditions))))):
            namespace = namespace_in(info.key)
            if namespace is None:
                digest_keys.append(info.key)
            else:
                found.add(namespace)
        for entry in (yield from get_many(self._resource, digest_keys)).values():
            found.add(StoredItem.unpack(entry.body).namespace)
        selected = {namespace[: op.max_depth] for namespace in found if is_selected(namespace, conditions)}
        return sorted(selected)[op.offset : op.offset + op.limit]

    def _put(self, key: str, op: PutOp) -> Flow[None]:
        """Puts or deletes an item. To keep the creation time, a put reads the item first, and retries on a conflict."""
        if op.value is None:
            yield from delete(self._resource, key)
            return
        for _ in attempts():
            entry = yield from get(self._resource, key)
            now = datetime.now(timezone.utc)
            created_at = StoredItem.unpack(entry.body).created_at if entry else now
            item = StoredItem(op.namespace, op.key, dict(op.value), created_at, now, op.ttl)
            try:
                yield from self._put_entry(key, item.pack(), op.ttl, tag_of(entry.etag) if entry else None)
                return
            except VersionMismatch:
                continue

    def _refresh(self, entry: Entry, item: StoredItem) -> Flow[None]:
        """Restarts the TTL of an item. Has no effect if the item has changed since `entry` was read."""
        if item.ttl is None:
            return
        try:
            yield from self._put_entry(entry.key, entry.body, item.ttl, tag_of(entry.etag))
        except VersionMismatch:
            return

    def _put_entry(self, key: str, body: bytes, ttl: float | None, etag: str | None) -> Flow[None]:
        yield from put(
            self._resource,
            key,
            body,
            content_type="application/json",
            ttl_seconds=NEVER_EXPIRES if ttl is None else max(1, math.ceil(ttl * 60)),
            if_absent=etag is None,
            if_match=etag,
            idempotency_key=new_key(),
        )
