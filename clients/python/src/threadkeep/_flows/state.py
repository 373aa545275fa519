from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import operations as ops
from .._flow import Flow
from .._http.message import Request, Response
from .._json import encode
from .._resource import DOT_SEGMENTS, JSON, QueryValue, ThreadResource, segment
from ..errors import NotFound
from ..models import Receipt
from ..operations import Operation
from .receipts import receipt_of, required, valued, written

Tag = str | int | None
MERGE_PATCH = "application/merge-patch+json"


def read(thread: ThreadResource, *keys: str) -> Flow[dict[str, Any]]:
    """Returns the state, or only `keys`."""
    return (yield from valued(thread.read("/state", {"key": keys} if keys else None), dict))


def get(
    thread: ThreadResource,
    key: str,
    default: Any = None,
    *,
    tail: int | None = None,
    offset: int | None = None,
    limit: int | None = None,
) -> Flow[Any]:
    """Returns the value of `key`, or `default` if the key is absent.

    If the value is an array, `tail` selects the newest elements, oldest first. `offset` and `limit` select a range.
    """
    if key in DOT_SEGMENTS:
        found = (yield from read(thread, key)).get(key, default)
        return _part(found, tail, offset or 0, limit)
    try:
        query = {"tail": tail, "offset": offset, "limit": limit}
        return (yield from valued(thread.read(f"/state/{segment(key)}", query)))
    except NotFound as error:
        if error.code != "key_not_found":
            raise
        return default


def _part(value: Any, tail: int | None, offset: int, limit: int | None) -> Any:
    """Slices `value` like the server does."""
    if not isinstance(value, list):
        return value
    if tail is not None:
        return value[-tail:] if tail else []
    return value[offset : None if limit is None else offset + limit]


def keys(thread: ThreadResource) -> Flow[list[str]]:
    """Returns the keys of the state, sorted."""
    return (yield from valued(thread.read("/keys"), list))


def set(
    thread: ThreadResource, key: str, value: Any, *, if_match: Tag = None, idempotency_key: str | None = None
) -> Flow[Receipt]:
    """Sets a key to a JSON value."""
    if key in DOT_SEGMENTS:
        return (yield from merge(thread, [ops.set(key, value)], if_match=if_match, idempotency_key=idempotency_key))
    return (
        yield from written(_write(thread, "PUT", f"/state/{segment(key)}", encode(value), if_match, idempotency_key))
    )


def push(
    thread: ThreadResource,
    key: str,
    value: Any,
    max_records: int | None = None,
    *,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Appends a value to an array, and keeps the newest `max_records` values. The receipt has the array's `length`."""
    if key in DOT_SEGMENTS:
        operation = ops.push(key, value, max_records)
        return (yield from _only(thread, operation, if_match, idempotency_key))
    query = thread.ttl if max_records is None else {**thread.ttl, "max_records": max_records}
    return (
        yield from written(
            _write(thread, "POST", f"/state/{segment(key)}/push", encode(value), if_match, idempotency_key, query=query)
        )
    )


def increment(
    thread: ThreadResource, key: str, by: int = 1, *, if_match: Tag = None, idempotency_key: str | None = None
) -> Flow[int]:
    """Adds `by` to an integer, and returns the exact sum. An absent key counts as 0."""
    if key in DOT_SEGMENTS:
        receipt = yield from _only(thread, ops.increment(key, by), if_match, idempotency_key)
    else:
        receipt = yield from written(
            _write(thread, "POST", f"/state/{segment(key)}/increment", encode({"by": by}), if_match, idempotency_key)
        )
    return required(receipt.value, "value")


def delete(thread: ThreadResource, key: str, *, if_match: Tag = None, idempotency_key: str | None = None) -> Flow[bool]:
    """Deletes a key. Returns whether it existed."""
    if key in DOT_SEGMENTS:
        receipt = yield from _only(thread, ops.delete(key), if_match, idempotency_key)
    else:
        receipt = yield from written(
            _write(thread, "DELETE", f"/state/{segment(key)}", None, if_match, idempotency_key)
        )
    return required(receipt.deleted, "deleted")


def merge(
    thread: ThreadResource,
    operations: Iterable[Operation],
    *,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Applies 1 to 1,000 operations in order, atomically. The receipt has their `results`."""
    return (
        yield from written(
            _write(thread, "PATCH", "/state", encode({"operations": list(operations)}), if_match, idempotency_key)
        )
    )


def patch(
    thread: ThreadResource,
    patch: Mapping[str, Any],
    *,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Applies a JSON merge patch (RFC 7396): a value sets a key, None deletes it, and nested objects are merged."""
    return (
        yield from written(
            _write(thread, "PATCH", "/state", encode(patch), if_match, idempotency_key, content_type=MERGE_PATCH)
        )
    )


def replace(
    thread: ThreadResource,
    state: Mapping[str, Any],
    *,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Replaces the whole state."""
    return (yield from written(_write(thread, "PUT", "/state", encode(state), if_match, idempotency_key)))


def clear(thread: ThreadResource, *, if_match: Tag = None, idempotency_key: str | None = None) -> Flow[Receipt]:
    """Clears the state."""
    return (yield from written(_write(thread, "DELETE", "/state", None, if_match, idempotency_key)))


def _write(
    thread: ThreadResource,
    method: str,
    suffix: str,
    body: bytes | None,
    if_match: Tag,
    idempotency_key: str | None,
    *,
    query: Mapping[str, QueryValue] | None = None,
    content_type: str = JSON,
) -> Request:
    return thread.write(
        method,
        suffix,
        body,
        query=thread.ttl if query is None else query,
        content_type=content_type,
        if_match=if_match,
        idempotency_key=idempotency_key,
    )


def _only(thread: ThreadResource, operation: Operation, if_match: Tag, idempotency_key: str | None) -> Flow[Receipt]:
    """Performs one operation as a merge, because a URL cannot contain the key `.` or `..`."""
    response: Response = yield _write(
        thread, "PATCH", "/state", encode({"operations": [operation]}), if_match, idempotency_key
    )
    data = response.members()
    return receipt_of(response, {**data, **data["results"][0]})
