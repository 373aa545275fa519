from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._flow import Emit, Flow, Items
from .._http.message import Response
from .._json import encode
from .._omitted import OMITTED, not_none, passed
from .._resource import QueryValue, Resource, ThreadResource, segment, without_signature
from ..models import ThreadInfo
from .receipts import done, received, required
from .state import Tag


def create(
    resource: Resource,
    *,
    id: str = OMITTED,
    owner: str = OMITTED,
    metadata: Mapping[str, Any] | None = None,
    ttl_seconds: int | None = None,
    state: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Flow[ThreadResource]:
    """Creates a thread. Raises `Conflict` if the ID is taken."""
    body = encode({**passed(id=id, owner=owner), **not_none(metadata=metadata, ttl_seconds=ttl_seconds, state=state)})
    response: Response = yield resource.write("POST", "/v1/threads", body, idempotency_key=idempotency_key)
    info = _info(response)
    if resource.has_api_key:
        return by_id(resource, info.id, info.signed_id)
    return by_signature(resource, required(info.signed_id, "signed_id"))


def by_id(resource: Resource, id: str, signed_id: str | None = None, ttl_seconds: int | None = None) -> ThreadResource:
    """Addresses a thread by ID, with an API key. Omits a signature, because the server rejects signed IDs in paths."""
    path = f"/v1/threads/{segment(without_signature(id))}"
    return ThreadResource(path, resource.headers, id, signed_id, ttl_seconds, has_login=resource.has_login)


def by_signature(resource: Resource, signed_id: str, ttl_seconds: int | None = None) -> ThreadResource:
    """Addresses a thread by signed ID. Omits the API key, but sends a user's login, which the thread may require."""
    headers = dict(resource.headers)
    if resource.has_api_key:
        del headers["authorization"]
    id = signed_id.partition(";")[0]
    if not (signed_id.isascii() and signed_id.isprintable()):
        raise ValueError("The signed ID must be visible ASCII.")
    headers["x-thread-id"] = signed_id
    return ThreadResource("/v1/threads/current", headers, id, signed_id, ttl_seconds, has_login=resource.has_login)


def resource_of(thread: ThreadResource, info: ThreadInfo) -> ThreadResource:
    headers = {name: value for name, value in thread.headers.items() if name != "x-turn-token"}
    caller = Resource("", headers, has_login=thread.has_login)
    if thread.has_api_key:
        return by_id(caller, info.id, info.signed_id)
    return by_signature(caller, required(info.signed_id, "signed_id"))


def listed(
    resource: Resource,
    owner: str = OMITTED,
    *,
    order: str | None = None,
    metadata: Mapping[str, str | int | bool] | None = None,
) -> Items[ThreadInfo]:
    """Yields the threads of `owner`, most recently written first. Without `owner`, yields all threads, sorted by ID."""
    query: dict[str, QueryValue] = {**passed(owner=owner), "order": order, "limit": 100}
    for name, value in (metadata or {}).items():
        query[f"metadata.{name}"] = value
    while True:
        page = yield from received(resource.read("/v1/threads", query))
        for thread in page["threads"]:
            yield Emit(ThreadInfo.of(thread))
        query["cursor"] = page.get("next_cursor")
        if not query["cursor"]:
            return


def info(thread: ThreadResource) -> Flow[ThreadInfo]:
    """Returns the thread without its state."""
    return _info((yield thread.read()))


def configure(
    thread: ThreadResource,
    *,
    metadata: Mapping[str, Any] | None = None,
    ttl_seconds: int | None = None,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[ThreadInfo]:
    """Merges metadata, and sets the TTL."""
    body = not_none(metadata=metadata, ttl_seconds=ttl_seconds)
    return (yield from _change(thread, body, if_match, idempotency_key))


def assign(
    thread: ThreadResource, owner: str | None, *, if_match: Tag = None, idempotency_key: str | None = None
) -> Flow[ThreadInfo]:
    """Assigns the thread to `owner`. None removes the owner."""
    return (yield from _change(thread, {"owner": owner}, if_match, idempotency_key))


def _change(
    thread: ThreadResource, changes: dict[str, Any], if_match: Tag, idempotency_key: str | None
) -> Flow[ThreadInfo]:
    response: Response = yield thread.write(
        "PATCH",
        "",
        encode(changes),
        query=thread.ttl,
        if_match=if_match,
        idempotency_key=idempotency_key,
    )
    return _info(response)


def destroy(thread: ThreadResource, *, if_match: Tag = None, idempotency_key: str | None = None) -> Flow[None]:
    """Destroys the thread. For the next minute, writes to its ID raise `Destroyed`."""
    yield from done(thread.write("DELETE", if_match=if_match, idempotency_key=idempotency_key))


def fork(
    thread: ThreadResource,
    *,
    id: str = OMITTED,
    owner: str = OMITTED,
    metadata: Mapping[str, Any] | None = None,
    from_checkpoint: int = OMITTED,
    include: Sequence[str] | None = None,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[ThreadResource]:
    """Copies the thread to a new thread. `include` lists the parts to copy: `state`, `scope` or `history`."""
    copied = passed(id=id, owner=owner, from_checkpoint=from_checkpoint)
    body = encode({**copied, **not_none(metadata=metadata, include=include)})
    response: Response = yield thread.write(
        "POST", "/fork", body, query=thread.ttl, if_match=if_match, idempotency_key=idempotency_key
    )
    return resource_of(thread, _info(response))


def rotate(thread: ThreadResource, *, if_match: Tag = None, idempotency_key: str | None = None) -> Flow[ThreadResource]:
    """Gives the thread a new ID. Returns the thread with the new ID. Calls with the old ID raise `Destroyed`."""
    response: Response = yield thread.write("POST", "/rotate", if_match=if_match, idempotency_key=idempotency_key)
    return resource_of(thread, _info(response))


def _info(response: Response) -> ThreadInfo:
    return ThreadInfo.of(response.members(), etag=response.etag)
