"""Revisions of sessions: which thread a session in hand was read from, and at which version."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from google.adk.sessions import Session

from .._adapter import tag_of
from .._flow import Flow
from .._http.message import Response
from .._place import ThreadPlace
from ..thread import AsyncThread

EVENTS = "n"
"""The key of a session's state that counts its events."""
UPDATED = "t"
"""The key of the timestamp of its last event. Every session has it."""
VALUE = "s:"
"""Begins the keys that ADK named."""

_MARKER = re.compile(r"(thrd_\S+) ([0-9]+) (\S+)")
"""A revision as text. Other services have markers of other forms."""


class Revision(NamedTuple):
    """A version of a thread, and the number of events that the session has at this version."""

    thread: str
    events: int
    etag: str

    @classmethod
    def of(cls, session: Session) -> Revision | None:
        """The revision that a session in hand has. None if this adapter did not make the session."""
        found = _MARKER.fullmatch(session._storage_update_marker or "")
        return cls(found[1], int(found[2]), found[3]) if found else None

    def note_in(self, session: Session) -> None:
        """Says that a session in hand has this revision."""
        session._storage_update_marker = f"{self.thread} {self.events} {self.etag}"


class Stored(NamedTuple):
    """A session as a thread has it, without its events."""

    revision: Revision
    last_update_time: float
    state: dict[str, Any]


async def stored(thread: AsyncThread) -> Stored | None:
    """Reads a session. None if it was deleted or has expired."""
    state, etag = await thread._runner.run(_state_and_tag(thread._place))
    if UPDATED not in state:
        return None
    return Stored(Revision(thread.id, state[EVENTS], etag), state[UPDATED], values(state))


def values(state: dict[str, Any]) -> dict[str, Any]:
    """The values of a thread under the keys that ADK named."""
    return {key[len(VALUE) :]: value for key, value in state.items() if key.startswith(VALUE)}


def _state_and_tag(thread: ThreadPlace) -> Flow[tuple[dict[str, Any], str]]:
    response: Response = yield thread.read("/state")
    state: Any = response.json()
    return state, tag_of(response.etag)
