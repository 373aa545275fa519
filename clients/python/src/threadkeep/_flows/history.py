from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from .._flow import Emit, Flow, Items
from .._json import encode
from .._resource import QueryValue, ThreadResource, segment
from ..models import AppendedItem, HistoryItem, HistorySegment
from .receipts import received

PAGE = 1_000
"""Maximum number of items in a request."""


def append(
    thread: ThreadResource, value: Any, *, id: str | None = None, idempotency_key: str | None = None
) -> Flow[AppendedItem]:
    """Appends an item. Has no effect if the history already has an item with the same ID and value."""
    appended = yield from append_many(
        thread, [value], ids=None if id is None else [id], idempotency_key=idempotency_key
    )
    return appended[0]


def append_many(
    thread: ThreadResource,
    values: Iterable[Any],
    *,
    ids: Sequence[str] | None = None,
    idempotency_key: str | None = None,
) -> Flow[list[AppendedItem]]:
    """Appends items in atomic requests of up to 1,000 items."""
    items = [{"id": id, "value": value} for id, value in _with_ids(list(values), ids)]
    bodies = [encode({"items": batch}) for batch in _batches(items)]  # encodes all items before the first request
    appended: list[AppendedItem] = []
    for number, body in enumerate(bodies):
        key = f"{idempotency_key}.{number}" if idempotency_key and number else idempotency_key
        request = thread.write("POST", "/history", body, query=thread.ttl, idempotency_key=key)
        appended += [AppendedItem.of(item) for item in (yield from received(request))["items"]]
    return appended


def _with_ids(values: list[Any], ids: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    ids = [uuid.uuid4().hex for _ in values] if ids is None else ids
    return zip(ids, values, strict=True)


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, PAGE)):
        yield batch


def items(thread: ThreadResource, after: int = 0, *, originals: bool = False) -> Items[HistoryItem]:
    """Yields the items after `after`, oldest first. `originals` selects original items instead of their summaries."""
    query: dict[str, QueryValue] = {"after": after, "limit": PAGE}
    if originals:
        query["originals"] = "true"
    yield from pages(thread, query)


def pages(thread: ThreadResource, query: dict[str, QueryValue], suffix: str = "/history") -> Items[HistoryItem]:
    while True:
        page = yield from received(thread.read(suffix, query))
        for item in page["items"]:
            yield Emit(HistoryItem.of(item))
        if page.get("next_cursor") is None:
            return
        query["after"] = page["next_cursor"]


def latest(thread: ThreadResource, n: int) -> Flow[list[HistoryItem]]:
    """Returns the newest `n` items, oldest first."""
    found: list[HistoryItem] = []
    query: dict[str, QueryValue] = {"order": "desc"}
    while len(found) < n:  # a page has up to 2 MiB, so several pages may be necessary
        query["limit"] = min(n - len(found), PAGE)
        page = yield from received(thread.read("/history", query))
        found += [HistoryItem.of(item) for item in page["items"]]
        if page.get("next_cursor") is None:
            break
        query["before"] = page["next_cursor"]
    return found[::-1]


def take(thread: ThreadResource, count: int = 1, *, idempotency_key: str | None = None) -> Flow[list[HistoryItem]]:
    """Removes the newest `count` items, up to 100, and returns them, oldest first."""
    request = thread.write(
        "POST", "/history/take", encode({"count": count}), query=thread.ttl, idempotency_key=idempotency_key
    )
    return [HistoryItem.of(item) for item in (yield from received(request))["items"]]


def compact(
    thread: ThreadResource,
    values: Iterable[Any],
    *,
    through: int,
    count: int,
    keep_seconds: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[int]:
    """Replaces all items up to the sequence number `through` with `values`. Returns the segment number.

    Raises `VersionMismatch` unless exactly `count` items would be replaced, because the items have then changed.
    """
    body: dict[str, Any] = {"through": through, "count": count, "items": [{"value": value} for value in values]}
    if keep_seconds is not None:
        body["keep_seconds"] = keep_seconds
    request = thread.write("POST", "/history/compact", encode(body), idempotency_key=idempotency_key)
    return int((yield from received(request))["segment"])


def segments(thread: ThreadResource) -> Flow[list[HistorySegment]]:
    """Returns the segments (original items that compactions replaced) that the server still stores, newest first."""
    page = yield from received(thread.read("/history/segments", {}))
    return [HistorySegment.of(one) for one in page["segments"]]


def segment_items(thread: ThreadResource, number: int) -> Items[HistoryItem]:
    """Yields the original items of a segment, oldest first."""
    yield from pages(thread, {"limit": PAGE}, f"/history/segments/{number}")


def delete(thread: ThreadResource, id: str, *, idempotency_key: str | None = None) -> Flow[bool]:
    """Removes an item. Returns whether it existed."""
    return (yield from _delete(thread, f"/history/{segment(id)}", idempotency_key))


def clear(thread: ThreadResource, *, idempotency_key: str | None = None) -> Flow[bool]:
    """Removes all items. Returns whether the history had any."""
    return (yield from _delete(thread, "/history", idempotency_key))


def _delete(thread: ThreadResource, suffix: str, idempotency_key: str | None) -> Flow[bool]:
    request = thread.write("DELETE", suffix, query=thread.ttl, idempotency_key=idempotency_key)
    return bool((yield from received(request))["deleted"])
