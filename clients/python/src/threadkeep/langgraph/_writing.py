from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata

from .._adapter import attempts, digest, tag_of
from .._dual import NEVER_EXPIRES, put_request
from .._flow import Flow
from .._flows.namespaces import configure, get, put
from .._http.message import Request
from .._resource import Resource, new_key
from ..errors import VersionMismatch
from ._bodies import assemble, body_for, parts_of
from ._records import (
    Record,
    Reference,
    Typed,
    Write,
    blob_keys,
    checkpoints_key,
    pack_writes,
    unpack_writes,
    writes_key,
)
from ._thread import SavedThread

INLINE_BYTES = 4_096
"""Maximum size of a value that is stored in its checkpoint's entry."""


def save(
    thread: SavedThread,
    runs: Resource,
    idle_ttl_seconds: int | None,
    thread_id: str,
    ns: str,
    parent: str | None,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Flow[None]:
    if idle_ttl_seconds is not None and parent is None:
        yield from configure(thread.resource, idle_ttl_seconds=idle_ttl_seconds)
    values, parts = _values(thread, ns, checkpoint, new_versions)
    without_values = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    dumps = thread.serde.dumps_typed
    record = Record(thread_id, ns, checkpoint["id"], parent, dumps(without_values), dumps(metadata), values)
    yield [*index_requests(thread.resource, runs, thread_id, metadata), *parts]
    yield from put_record(thread.resource, record)
    for channel, value in values.items():
        if isinstance(value, Reference):
            thread.stored_values.add(thread.resource, ns, channel, value)


def _values(
    thread: SavedThread, ns: str, checkpoint: Checkpoint, new_versions: ChannelVersions
) -> tuple[dict[str, Typed | Reference], list[Request]]:
    values: dict[str, Typed | Reference] = {}
    parts: list[Request] = []
    versions = {**checkpoint["channel_versions"], **new_versions}
    for channel, value in checkpoint["channel_values"].items():
        version = str(versions.get(channel, checkpoint["id"]))
        stored = None if channel in new_versions else thread.stored_values.get(thread.resource, ns, channel, version)
        if stored:
            values[channel] = stored
            continue
        type, data = thread.serde.dumps_typed(value)
        if len(data) <= INLINE_BYTES:
            values[channel] = (type, data)
            continue
        large = list(parts_of(data))
        values[channel] = reference = Reference(type, version, len(large))
        parts += map(put_request, [thread.resource] * len(large), blob_keys(ns, channel, reference), large)
    return values, parts


def put_record(resource: Resource, record: Record) -> Flow[None]:
    key = checkpoints_key(record.ns, record.id)
    body = yield from body_for(resource, key, record.pack())
    yield put_request(resource, key, body)


def index_requests(resource: Resource, runs: Resource, thread_id: str, metadata: CheckpointMetadata) -> list[Request]:
    """Returns the requests that add a run to the index of runs, and store the new index entry's key in the thread."""
    run_id = run_of(metadata)
    if run_id is None:
        return []
    key = run_key(run_id, thread_id)
    return [put_request(runs, key, thread_id.encode("utf-8", "surrogatepass")), put_request(resource, f"r/{key}", b"")]


def run_of(metadata: CheckpointMetadata) -> str | None:
    run_id = metadata.get("run_id")
    return None if run_id is None else str(run_id)


def run_key(run_id: str, thread_id: str | None = None) -> str:
    """Returns the index key of a run in a thread. Without `thread_id`, returns the prefix of the run's keys."""
    return f"{digest(run_id)}/{'' if thread_id is None else digest(thread_id)}"


def save_writes(
    thread: SavedThread, ns: str, id: str, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Flow[None]:
    """Adds writes to a task's stored writes atomically. If two writes have the same index, the first one is kept.

    For a special (negative) index, the last write is kept. Each task has its own entry, so only two attempts of the
    same task conflict.
    """
    rows = [
        Write(task_path, task_id, WRITES_IDX_MAP.get(channel, position), channel, *thread.serde.dumps_typed(value))
        for position, (channel, value) in enumerate(writes)
    ]
    resource, key = thread.resource, writes_key(ns, id, task_id)
    stored: dict[int, Write] = {}
    etag: str | None = None
    for _ in attempts():
        merged = dict(stored)
        for row in rows:
            if row.idx < 0 or row.idx not in stored:
                merged[row.idx] = row
        if merged == stored:
            return
        body = yield from body_for(resource, key, pack_writes(merged.values()))
        try:
            yield from put(
                resource,
                key,
                body,
                ttl_seconds=NEVER_EXPIRES,
                if_absent=etag is None,
                if_match=etag,
                idempotency_key=new_key(),
            )
            return
        except VersionMismatch:
            entry = yield from get(resource, key)
            etag = tag_of(entry.etag) if entry else None
            bodies = yield from assemble(resource, {key: entry.body} if entry else {})
            stored = {write.idx: write for data in bodies.values() for write in unpack_writes(data)}
