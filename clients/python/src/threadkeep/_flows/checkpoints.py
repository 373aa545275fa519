from __future__ import annotations

from .._flow import Flow
from .._http.message import Response
from .._json import encode
from .._resource import ThreadResource
from ..models import Checkpoint, ThreadInfo
from .receipts import done, received
from .state import Tag


def create(
    thread: ThreadResource,
    name: str | None = None,
    *,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Checkpoint]:
    """Saves the state and metadata as a numbered checkpoint."""
    body = encode({} if name is None else {"name": name})
    request = thread.write("POST", "/checkpoints", body, if_match=if_match, idempotency_key=idempotency_key)
    return Checkpoint.of((yield from received(request)))


def listed(thread: ThreadResource) -> Flow[list[Checkpoint]]:
    """Returns the checkpoints without their states, newest first."""
    found = yield from received(thread.read("/checkpoints"))
    return [Checkpoint.of(checkpoint) for checkpoint in found["checkpoints"]]


def get(thread: ThreadResource, number: int) -> Flow[Checkpoint]:
    """Returns a checkpoint with its state and metadata."""
    return Checkpoint.of((yield from received(thread.read(f"/checkpoints/{number:d}"))))


def restore(
    thread: ThreadResource, number: int, *, if_match: Tag = None, idempotency_key: str | None = None
) -> Flow[ThreadInfo]:
    """Restores the state and metadata of a checkpoint atomically."""
    response: Response = yield thread.write(
        "POST", f"/checkpoints/{number:d}/restore", if_match=if_match, idempotency_key=idempotency_key
    )
    return ThreadInfo.of(response.members(), etag=response.etag)


def delete(
    thread: ThreadResource, number: int, *, if_match: Tag = None, idempotency_key: str | None = None
) -> Flow[None]:
    """Deletes a checkpoint."""
    request = thread.write("DELETE", f"/checkpoints/{number:d}", if_match=if_match, idempotency_key=idempotency_key)
    yield from done(request)
