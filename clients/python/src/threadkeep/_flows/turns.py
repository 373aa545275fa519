from __future__ import annotations

from dataclasses import dataclass

from .._flow import Flow
from .._json import encode
from .._resource import ThreadResource
from ..errors import Conflict, Destroyed
from ..models import Model, TurnState
from .receipts import done, received


@dataclass(frozen=True)
class Grant(Model):
    token: str
    number: int
    in_doubt: int


def take(thread: ThreadResource, ttl_seconds: int, wait_seconds: int, exclusive: bool) -> Flow[Grant]:
    body = {"ttl_seconds": ttl_seconds, "wait_seconds": wait_seconds, "exclusive": exclusive}
    request = thread.write("POST", "/turn", encode(body), query=thread.ttl, extra_seconds=wait_seconds)
    return Grant.of((yield from received(request)))


def renew(thread: ThreadResource, token: str, ttl_seconds: int) -> Flow[None]:
    headers = {"x-turn-token": token}
    yield from done(thread.read("/turn", method="PATCH", body={"ttl_seconds": ttl_seconds}, headers=headers))


def release(thread: ThreadResource, token: str, is_complete: bool = True) -> Flow[None]:
    """Releases a turn. Has no effect if the turn is lost or the thread has ended.

    If the work of the turn is not complete, the server keeps its effects for the turn that resumes the work.
    """
    query = None if is_complete else {"messages": "return"}
    try:
        yield from done(thread.read("/turn", query, method="DELETE", headers={"x-turn-token": token}))
    except (Conflict, Destroyed):
        pass


def state(thread: ThreadResource) -> Flow[TurnState]:
    """Returns whether a client holds the turn, and the number of the last turn."""
    return TurnState.of((yield from received(thread.read("/turn"))))
