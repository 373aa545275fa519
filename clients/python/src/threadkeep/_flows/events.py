"""Event streams, which resume after an interruption."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .._flow import Emit, Items, Open, Pause, Read
from .._resource import QueryValue, Resource, ThreadResource
from .._sse import Message, SseParser
from .._transport import Stream
from ..errors import APIError, InvalidResponse, RateLimited, ThreadkeepError, TransportError
from ..models import Event

SILENCE_SECONDS = 45.0
"""Time without data after which a connection is considered dead. The server sends a comment every 15 s."""
MAX_PAUSE_SECONDS = 30.0
EVENT_STREAM = "text/event-stream"


def of_all(resource: Resource, types: Sequence[str] | None = None, *, last_event_id: str | None = None) -> Items[Event]:
    """Yields the events of all threads, or only those of `types`."""
    query: dict[str, QueryValue] = {"type": types}
    yield from _follow(resource, "/v1/events", query, last_event_id)


def of_thread(thread: ThreadResource, *, last_event_id: str | None = None, values: bool = False) -> Items[Event]:
    """Yields the events of the thread until the thread ends or gets a new ID.

    With `values`, events contain the new values of the changed keys. After a `reset` event, read the thread again,
    because events may be missing.
    """
    yield from _follow(thread, "/events", {"values": values or None}, last_event_id, ends=True)


def _follow(
    resource: Resource,
    path: str,
    query: dict[str, QueryValue],
    cursor: str | None,
    ends: bool = False,
) -> Items[Event]:
    retry_seconds = 2.0
    failures = 0
    while True:
        try:
            request = resource.read(path, query, headers={"accept": EVENT_STREAM, "last-event-id": cursor})
            stream: Stream = yield Open(request)
            if not stream.headers.get("content-type", "").startswith(EVENT_STREAM):
                raise InvalidResponse("The response is not an event stream.")
            failures = 0
            parser = SseParser()
            while part := (yield Read(SILENCE_SECONDS)):
                for message in parser.feed(part):
                    cursor = message.id or cursor
                    if message.retry_ms is not None:
                        retry_seconds = message.retry_ms / 1_000
                    if message.data and message.type:
                        yield Emit(_event(message, cursor))
                        if ends and message.type in ("thread.destroyed", "thread.rotated"):
                            return
        except ThreadkeepError as error:
            if not _is_transient(error):
                raise
            min_pause = error.retry_after or 0.0 if isinstance(error, APIError) else 0.0
        else:
            min_pause = 0.0
        ceiling = min(retry_seconds * 2**failures, MAX_PAUSE_SECONDS)
        failures = min(failures + 1, 8)
        yield Pause(max(min_pause, random.uniform(ceiling / 2, ceiling)))


def _event(message: Message, cursor: str | None) -> Event:
    return Event(message.type, cursor or "", message.json())


def _is_transient(error: ThreadkeepError) -> bool:
    if isinstance(error, APIError):
        return isinstance(error, RateLimited) or error.status in (502, 503, 504)
    return isinstance(error, TransportError) and not isinstance(error, InvalidResponse)
