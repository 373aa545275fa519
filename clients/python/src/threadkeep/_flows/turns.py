from __future__ import annotations

from .._flow import Flow
from .._json import encode
from .._resource import ThreadResource
from ..errors import Conflict, Destroyed
from ..models import TurnState
from .receipts import done, received


def take(thread: ThreadResource, ttl_seconds: int, wait_seconds: int, exclusive: bool) -> Flow[str]:
    body = {"ttl_seconds": ttl_seconds, "wait_seconds": wait_seconds, "exclusive": exclusive}
    request = thread.write("POST", "/turn", encode(body), query=thread.ttl, extra_seconds=wait_seconds)
    token: str = (yield from received(request))["token"]
    return token


def renew(thread: ThreadResource, token: str, ttl_seconds: int) -> Flow[None]:
    headers = {"x-turn-token": token}
    yield from done(thread.read("/turn", method="PATCH", body={"ttl_seconds": ttl_seconds}, headers=headers))


def release(thread: ThreadResource, token: str) -> Flow[None]:
    """Releases a turn. Has no effect if the turn is lost or the thread has ended."""
    try:
        yield from done(thread.read("/turn", method="DELETE", headers={"x-turn-token": token}))
    except (Conflict, Destroyed):
        pass


def state(thread: ThreadResource) -> Flow[TurnState]:
    """Returns whether a client holds the turn."""
    return TurnState.of((yield from received(thread.read("/turn"))))
