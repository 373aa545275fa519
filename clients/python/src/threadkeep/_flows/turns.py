"""Turns: leases of a thread."""

from __future__ import annotations

from .._flow import Flow
from .._json import encode
from .._place import ThreadPlace
from ..errors import Conflict, Destroyed
from ..models import TurnState
from .receipts import done, received


def take(thread: ThreadPlace, ttl_seconds: int, wait_seconds: int, exclusive: bool) -> Flow[str]:
    """Takes the turn, and returns its token. Raises `Conflict` with `turn_taken` when the wait is over."""
    body = {"ttl_seconds": ttl_seconds, "wait_seconds": wait_seconds, "exclusive": exclusive}
    request = thread.write("POST", "/turn", encode(body), query=thread.ttl, extra_seconds=wait_seconds)
    token: str = (yield from received(request))["token"]
    return token


def renew(thread: ThreadPlace, token: str, ttl_seconds: int) -> Flow[None]:
    """Renews a turn. Raises `Conflict` with `turn_lost` if it is lost."""
    headers = {"x-turn-token": token}
    yield from done(thread.read("/turn", method="PATCH", body={"ttl_seconds": ttl_seconds}, headers=headers))


def release(thread: ThreadPlace, token: str) -> Flow[None]:
    """Gives a turn back, if there is anything left to give back."""
    try:
        yield from done(thread.read("/turn", method="DELETE", headers={"x-turn-token": token}))
    except (Conflict, Destroyed):
        pass


def state(thread: ThreadPlace) -> Flow[TurnState]:
    """Whether somebody has the turn."""
    return TurnState.of((yield from received(thread.read("/turn"))))
