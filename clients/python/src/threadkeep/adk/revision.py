"""Revision of a loaded session: identifies its thread, and the version of the thread."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from google.adk.sessions import Session

from .._adapter import tag_of
from .._flow import Flow
from .._http.message import Response
from .._resource import ThreadResource
from ..thread import AsyncThread

EVENTS = "n"
"""State key for the number of events in the session."""
UPDATED = "t"
"""State key for the timestamp of the last event. Every session has this key."""
VALUE = "s:"
"""Prefix of state keys that come from ADK."""

_MARKER = re.compile(r"(thrd_\S+) ([0-9]+) (\S+)")
"""Matches a revision in a session's update marker. Markers of other session services do not match."""


class Revision(NamedTuple):
    thread: str
    events: int
    etag: str

    @classmethod
    def of(cls, session: Session) -> Revision | None:
        """Returns the revision of a loaded session, or None if another service made the session."""
        found = _MARKER.fullmatch(session._storage_update_marker or "")
        return cls(found[1], int(found[2]), found[3]) if found else None

    def note_in(self, session: Session) -> None:
        session._storage_update_marker = f"{self.thread} {self.events} {self.etag}"


class Stored(NamedTuple):
    revision: Revision
    last_update_time: float
    state: dict[str, Any]


async def stored(thread: AsyncThread) -> Stored | None:
    state, etag = await thread._runner.run(_state_and_tag(thread._resource))
    if UPDATED not in state:
        return None
    return Stored(Revision(thread.id, state[EVENTS], etag), state[UPDATED], values(state))


def values(state: dict[str, Any]) -> dict[str, Any]:
    return {key[len(VALUE) :]: value for key, value in state.items() if key.startswith(VALUE)}


def _state_and_tag(thread: ThreadResource) -> Flow[tuple[dict[str, Any], str]]:
    response: Response = yield thread.read("/state")
    state: Any = response.json()
    return state, tag_of(response.etag)
