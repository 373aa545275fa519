from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from langgraph.checkpoint.serde.base import SerializerProtocol

from .._adapter import tag_of
from .._dual import collected, delete_request, put_request, send_in_batches
from .._flow import Flow
from .._flows.namespaces import clear, configure, delete, entries, get, get_many, keys
from .._resource import Resource, new_key
from ..errors import VersionMismatch
from ..models import Entry
from ._reading import records_in
from ._records import Record, Reference, blob_keys, checkpoints_key
from ._thread import SavedThread, SavedThreads
from ._writing import index_requests, put_record, run_key, run_of

COPY_BATCH_SIZE = 16
"""Maximum number of entries in memory during a copy."""


def delete_thread(thread: SavedThread, runs: Resource) -> Flow[None]:
    in_thread = yield from collected(keys(thread.resource, "r/"))
    indexed = yield from get_many(runs, [info.key.removeprefix("r/") for info in in_thread])
    yield from clear(thread.resource)
    thread.stored_values.forget(thread.resource)
    for entry in indexed.values():
        yield from _delete_unchanged(runs, entry)


def delete_run(threads: SavedThreads, serde: SerializerProtocol, run_id: str) -> Flow[None]:
    for indexed in (yield from collected(entries(threads.runs, run_key(run_id)))):
        thread = threads.thread(indexed.body.decode("utf-8", "surrogatepass"), serde)
        in_thread = yield from get(thread.resource, f"r/{indexed.key}")
        records = yield from _records_of(thread)
        others = [record for record in records if run_of(serde.loads_typed(record.metadata)) != run_id]
        yield from _delete_except(thread, records, others)
        if in_thread:
            yield from _delete_unchanged(thread.resource, in_thread)
        yield from _delete_unchanged(threads.runs, indexed)


def keep_latest(thread: SavedThread) -> Flow[None]:
    """Deletes all checkpoints except each namespace's latest one and the ancestors that its delta channels need."""
    records = yield from _records_of(thread)
    by_ns: dict[str, dict[str, Record]] = {}
    for record in records:  # newest first
        by_ns.setdefault(record.ns, {})[record.id] = record
    kept = [record for by_id in by_ns.values() for record in _needed(thread, by_id)]
    yield from _delete_except(thread, records, kept)


def _needed(thread: SavedThread, by_id: dict[str, Record]) -> Iterator[Record]:
    """Yields the latest checkpoint, and the ancestors that its delta channels need.

    A delta channel is rebuilt from the nearest ancestor with a value for the channel, and from all later writes.
    """
    record = next(iter(by_id.values()))
    counters = thread.serde.loads_typed(record.metadata).get("counters_since_delta_snapshot") or {}
    versions = thread.serde.loads_typed(record.checkpoint)["channel_versions"]
    without_value = {channel for channel in counters if channel in versions and channel not in record.values}
    seen = {record.id}
    yield record
    while without_value and record.parent in by_id and record.parent not in seen:
        record = by_id[record.parent]
        seen.add(record.id)
        yield record
        without_value -= record.values.keys()


def copy(
    source: SavedThread, target: SavedThread, target_id: str, runs: Resource, idle_ttl_seconds: int | None
) -> Flow[None]:
    """Copies a thread. Copies each checkpoint after its ancestors, and after all data that the checkpoint refers to."""
    records = yield from _records_of(source)
    if records and idle_ttl_seconds is not None:
        yield from configure(target.resource, idle_ttl_seconds=idle_ttl_seconds)
    for prefix in ("b/", "v/w/", "w/"):
        infos = yield from collected(keys(source.resource, prefix))
        for start in range(0, len(infos), COPY_BATCH_SIZE):
            found = yield from get_many(source.resource, [info.key for info in infos[start : start + COPY_BATCH_SIZE]])
            yield [put_request(target.resource, entry.key, entry.body) for entry in found.values()]
    for record in reversed(records):
        yield index_requests(target.resource, runs, target_id, target.serde.loads_typed(record.metadata))
        yield from put_record(target.resource, record._replace(thread_id=target_id))


def _records_of(thread: SavedThread) -> Flow[list[Record]]:
    found = yield from collected(entries(thread.resource, "c/"))
    return (yield from records_in(thread, found))


def _delete_except(thread: SavedThread, records: Sequence[Record], kept: Sequence[Record]) -> Flow[None]:
    """Deletes all checkpoints except `kept`, then the writes and large values that only the deleted ones had."""
    kept_keys = set(map(_key, kept))
    doomed = {_key(record): record for record in records if _key(record) not in kept_keys}
    if not doomed:
        return
    resource = thread.resource
    yield from send_in_batches(delete_request(resource, key) for key in doomed)
    thread.stored_values.forget(resource)
    checkpoints = {_checkpoint_in(key) for key in doomed}
    for prefix in ("w/", "v/"):
        listed = yield from collected(keys(resource, prefix), lambda info: _checkpoint_in(info.key) in checkpoints)
        yield from send_in_batches(delete_request(resource, info.key) for info in listed)
    large = set(_blobs_of(doomed.values())) - set(_blobs_of(kept))
    yield from send_in_batches(delete_request(resource, key) for key in sorted(large))


def _key(record: Record) -> str:
    return checkpoints_key(record.ns, record.id)


def _checkpoint_in(key: str) -> tuple[str, ...]:
    return tuple(key.removeprefix("v/").split("/")[1:3])


def _blobs_of(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        for channel, value in record.values.items():
            if isinstance(value, Reference):
                yield from blob_keys(record.ns, channel, value)


def _delete_unchanged(resource: Resource, entry: Entry) -> Flow[None]:
    try:
        yield from delete(resource, entry.key, if_match=tag_of(entry.etag), idempotency_key=new_key())
    except VersionMismatch:
        return
