from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple

from .._dual import collected, together
from .._flow import Emit, Flow, Items
from .._flows.namespaces import entries, get, get_many, keys
from ..models import Entry
from ._bodies import ValuesDeleted, assemble, read_parts
from ._records import Record, Reference, Write, blob_keys, checkpoints_key, inverted, unpack_writes, writes_key
from ._thread import SavedThread

R = TypeVar("R")

ATTEMPTS = 3
BATCH_SIZE = 50
"""Number of checkpoints that a listing reads at a time."""


def config_of(thread_id: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": id}}


def read(thread: SavedThread, ns: str, id: str | None) -> Flow[CheckpointTuple | None]:
    return (yield from _retry_if_deleted(lambda: _read_once(thread, ns, id)))


def _retry_if_deleted(read_flow: Callable[[], Flow[R]]) -> Flow[R]:
    """Retries a read if data was deleted during the read. Raises `ValuesDeleted` if the last try fails."""
    for _ in range(ATTEMPTS - 1):
        try:
            return (yield from read_flow())
        except ValuesDeleted:
            continue
    return (yield from read_flow())


def _read_once(thread: SavedThread, ns: str, id: str | None) -> Flow[CheckpointTuple | None]:
    if id is None:
        found = yield from collected(entries(thread.resource, checkpoints_key(ns), limit=1))
        write_entries = None
    else:
        found, writes = yield from together([_entry(thread, ns, id), _entries_of_writes(thread, ns, id)])
        write_entries = [writes]
    records = yield from records_in(thread, found)
    return (yield from _tuples(thread, records, write_entries))[0] if records else None


def listed(
    threads: Sequence[SavedThread],
    ns: str | None,
    id: str | None,
    before: str | None,
    filter: Mapping[str, Any] | None,
    limit: int | None,
) -> Items[CheckpointTuple]:
    """Yields checkpoints, newest first. `limit` counts only checkpoints that match `filter`."""
    remaining = float("inf") if limit is None else limit
    key_limit = limit if len(threads) == 1 and ns is not None and before is None and not filter else None
    found: list[tuple[str, str, int]] = []
    for number, thread in enumerate(threads):
        prefix = "c/" if ns is None else checkpoints_key(ns, id)
        for info in (yield from collected(keys(thread.resource, prefix, limit=key_limit))):
            found.append((info.key.rpartition("/")[2], info.key, number))
    if id is not None:
        found = [row for row in found if row[0] == inverted(id)]
    if before is not None:
        found = [row for row in found if row[0] > inverted(before)]
    found.sort()
    while found and remaining > 0:
        size = int(min(BATCH_SIZE, remaining))
        batch, found = found[:size], found[size:]
        by_key: dict[tuple[str, int], CheckpointTuple] = {}
        for number in {number for _, _, number in batch}:
            thread_keys = [key for _, key, thread_number in batch if thread_number == number]
            for key, saved in (yield from _matching(threads[number], thread_keys, filter)).items():
                by_key[key, number] = saved
        for _, key, number in batch:
            if remaining > 0 and (key, number) in by_key:
                remaining -= 1
                yield Emit(by_key[key, number])


def _matching(
    thread: SavedThread, checkpoint_keys: list[str], filter: Mapping[str, Any] | None
) -> Flow[dict[str, CheckpointTuple]]:
    records = []
    for record in (yield from _retry_if_deleted(lambda: _records_at(thread, checkpoint_keys))):
        metadata = thread.serde.loads_typed(record.metadata) if filter else {}
        if all(metadata.get(name) == value for name, value in (filter or {}).items()):
            records.append(record)
    tuples: list[CheckpointTuple | None] = []
    try:
        tuples += yield from _tuples(thread, records)
    except ValuesDeleted:
        for record in records:
            tuples.append((yield from read(thread, record.ns, record.id)))
    by_key = zip((checkpoints_key(record.ns, record.id) for record in records), tuples, strict=True)
    return {key: saved for key, saved in by_key if saved}


def _records_at(thread: SavedThread, checkpoint_keys: list[str]) -> Flow[list[Record]]:
    found = yield from get_many(thread.resource, checkpoint_keys)
    return (yield from records_in(thread, list(found.values())))


def records_in(thread: SavedThread, found: Sequence[Entry]) -> Flow[list[Record]]:
    bodies = yield from assemble(thread.resource, {entry.key: entry.body for entry in found})
    return [Record.unpack(body) for body in bodies.values()]


def _entry(thread: SavedThread, ns: str, id: str) -> Flow[list[Entry]]:
    entry = yield from get(thread.resource, checkpoints_key(ns, id))
    return [entry] if entry else []


def _entries_of_writes(thread: SavedThread, ns: str, id: str) -> Flow[list[Entry]]:
    return collected(entries(thread.resource, writes_key(ns, id)))


def _tuples(
    thread: SavedThread, records: Sequence[Record], write_entries: Sequence[list[Entry]] | None = None
) -> Flow[list[CheckpointTuple]]:
    """Adds values and writes to checkpoints. Without `write_entries`, reads the writes."""
    flows: list[Flow[Any]] = [_large_values(thread, records)]
    if write_entries is None:
        flows += [_entries_of_writes(thread, record.ns, record.id) for record in records]
    large, *read_writes = yield from together(flows)
    tuples = []
    for record, found in zip(records, write_entries or read_writes, strict=True):
        bodies = yield from assemble(thread.resource, {entry.key: entry.body for entry in found})
        writes = sorted(write for body in bodies.values() for write in unpack_writes(body))
        tuples.append(_tuple(thread, record, large, writes))
    return tuples


def _large_values(thread: SavedThread, records: Sequence[Record]) -> Flow[dict[str, bytes]]:
    """Returns the parts of large values, by key. Raises `ValuesDeleted` if a part is missing."""
    part_keys = []
    for record in records:
        for channel, value in record.values.items():
            if isinstance(value, Reference):
                part_keys += blob_keys(record.ns, channel, value)
    return (yield from read_parts(thread.resource, list(dict.fromkeys(part_keys))))


def _tuple(thread: SavedThread, record: Record, large: Mapping[str, bytes], writes: list[Write]) -> CheckpointTuple:
    loads = thread.serde.loads_typed
    values = {}
    for channel, value in record.values.items():
        if isinstance(value, Reference):
            data = b"".join(large[key] for key in blob_keys(record.ns, channel, value))
            values[channel] = loads((value.type, data))
            thread.stored_values.add(thread.resource, record.ns, channel, value)
        else:
            values[channel] = loads(value)
    return CheckpointTuple(
        config=config_of(record.thread_id, record.ns, record.id),
        checkpoint=cast(Checkpoint, {**loads(record.checkpoint), "channel_values": values}),
        metadata=loads(record.metadata),
        parent_config=None if record.parent is None else config_of(record.thread_id, record.ns, record.parent),
        pending_writes=[(write.task_id, write.channel, loads((write.type, write.data))) for write in writes],
    )
