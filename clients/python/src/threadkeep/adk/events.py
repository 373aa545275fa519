from __future__ import annotations

from typing import Any

from google.adk.events import Event
from google.adk.sessions.base_session_service import GetSessionConfig

from .._adapter import digest
from ..thread import AsyncThread


def item_id(event: Event) -> str:
    """Derives a history item's ID from the event's ID. Hashes the event's ID, because it may be any string."""
    return digest(event.id)


def dumped(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude_none=True)


async def read(thread: AsyncThread, number: int, config: GetSessionConfig | None) -> list[Event]:
    count = number if config is None or config.num_recent_events is None else min(config.num_recent_events, number)
    events: list[Event] = []
    if count:
        async for item in thread.history.items(after=number - count):
            if item.seq > number:  # appended after the state was read
                break
            events.append(Event.model_validate(item.value["event"]))
    if config is None or config.after_timestamp is None:
        return events
    older = [n for n, event in enumerate(events) if event.timestamp < config.after_timestamp]
    return events[older[-1] + 1 :] if older else events


async def has(thread: AsyncThread, event: Event) -> bool:
    """Returns whether the thread has this event with the same content."""
    id, value = item_id(event), dumped(event)
    async for item in thread.history:
        if item.id == id:
            return bool(item.value["event"] == value)
    return False
