from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .._flow import Emit, Flow, Items
from .._http.message import Request, Response
from .._json import encode
from .._resource import QueryValue, Resource, segment
from ..errors import InvalidResponse, NotFound
from ..models import Entry, EntryInfo, EntryPut, NamespaceInfo, PutOutcome, Receipt, time_of
from .receipts import received, written
from .state import Tag

T = TypeVar("T")

BATCH = 100
"""Maximum number of entries in a request."""

MAX_PAGE_SIZE = 1_000


def get(namespace: Resource, key: str) -> Flow[Entry | None]:
    """Returns an entry, or None."""
    try:
        response: Response = yield namespace.read(f"/{segment(key)}")
    except NotFound as error:
        if error.code != "key_not_found":
            raise
        return None
    headers = response.headers
    if "content-type" not in headers or response.status != 200:
        raise InvalidResponse("The response is not an entry.")
    expires_at = headers.get("x-expires-at")
    return Entry(
        key=key,
        body=response.body,
        content_type=headers["content-type"],
        etag=response.etag,
        expires_at=time_of(expires_at) if expires_at else None,
    )


def put(
    namespace: Resource,
    key: str,
    body: bytes,
    *,
    content_type: str = "application/octet-stream",
    ttl_seconds: int | None = None,
    if_absent: bool = False,
    if_match: Tag = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Stores an entry. With `if_absent`, raises `VersionMismatch` if the entry exists.

    If a conditional put raises `TransportError`, `Unavailable` or `ServerError`, the server may have performed it:
    read the entry to find out. If you pass an `idempotency_key`, the client retries the put instead.
    """
    request = namespace.write(
        "PUT",
        f"/{segment(key)}",
        bytes(memoryview(body)),
        query={"ttl_seconds": ttl_seconds},
        headers={"content-type": content_type, "if-none-match": "*" if if_absent else None},
        if_match=if_match,
        idempotency_key=idempotency_key,
        is_repeatable=not (if_absent or if_match is not None) or idempotency_key is not None,
    )
    return (yield from written(request))


def delete(namespace: Resource, key: str, *, if_match: Tag = None, idempotency_key: str | None = None) -> Flow[bool]:
    """Deletes an entry. Returns whether the entry existed. Raises the same errors as `put`."""
    request = namespace.write(
        "DELETE",
        f"/{segment(key)}",
        if_match=if_match,
        idempotency_key=idempotency_key,
        is_repeatable=if_match is None or idempotency_key is not None,
    )
    return bool((yield from received(request))["deleted"])


def keys(
    namespace: Resource, prefix: str = "", *, order: str | None = None, limit: int | None = None
) -> Items[EntryInfo]:
    """Yields up to `limit` entries whose keys begin with `prefix`, without bodies, sorted by the bytes of the keys."""
    yield from _listed(namespace, {"prefix": prefix or None, "order": order}, limit, MAX_PAGE_SIZE, EntryInfo.of)


def entries(
    namespace: Resource, prefix: str = "", *, order: str | None = None, limit: int | None = None
) -> Items[Entry]:
    """Yields up to `limit` entries whose keys begin with `prefix`, with bodies, sorted by the bytes of the keys."""
    yield from _listed(namespace, {"prefix": prefix or None, "order": order, "bodies": True}, limit, None, entry_of)


def _listed(
    namespace: Resource,
    query: dict[str, QueryValue],
    limit: int | None,
    page_size: int | None,
    model: Callable[[dict[str, Any]], T],
) -> Items[T]:
    while limit is None or limit > 0:
        query["limit"] = page_size if limit is None else min(limit, MAX_PAGE_SIZE)
        page = yield from received(namespace.read("", query))
        for entry in page["entries"]:
            yield Emit(model(entry))
        query["cursor"] = page.get("next_cursor")
        if not query["cursor"]:
            return
        if limit is not None:
            limit -= len(page["entries"])


def get_many(namespace: Resource, keys: Iterable[str]) -> Flow[dict[str, Entry]]:
    """Returns a dict from keys to entries, without missing keys. Sends concurrent requests for 100 keys each."""
    found: dict[str, Entry] = {}
    remaining = list(dict.fromkeys(keys))
    while remaining:
        responses: list[Response] = yield [_get_request(namespace, batch) for batch in _batches(remaining)]
        remaining = []
        for response in responses:
            data = response.members()
            found.update((entry["key"], entry_of(entry)) for entry in data["entries"])
            remaining += data["unread"]
    return found


def _get_request(namespace: Resource, keys: list[str]) -> Request:
    return namespace.read("/get", method="POST", body={"keys": keys})


def put_many(
    namespace: Resource, entries: Iterable[EntryPut], *, idempotency_key: str | None = None
) -> Flow[list[PutOutcome]]:
    """Stores entries. Each entry succeeds or fails separately. Returns the outcomes in the order of `entries`."""
    batches = _batches([_put(entry) for entry in entries])
    bodies = [encode({"entries": batch}) for batch in batches]  # encodes all entries before the first request
    outcomes: list[PutOutcome] = []
    for number, body in enumerate(bodies):
        key = f"{idempotency_key}.{number}" if idempotency_key and number else idempotency_key
        request = namespace.write("POST", "/put", body, idempotency_key=key)
        outcomes += [PutOutcome.of(outcome) for outcome in (yield from received(request))["entries"]]
    return outcomes


def _put(entry: EntryPut) -> dict[str, Any]:
    data: dict[str, Any] = {"key": entry.key}
    if isinstance(entry.body, str):
        data["body"] = entry.body
    else:
        data["base64"] = base64.b64encode(entry.body).decode()
    if entry.content_type is not None:
        data["content_type"] = entry.content_type
    if entry.ttl_seconds is not None:
        data["ttl_seconds"] = entry.ttl_seconds
    if entry.if_absent:
        data["if_absent"] = True
    return data


def configure(
    namespace: Resource,
    *,
    default_ttl_seconds: int | None = None,
    idle_ttl_seconds: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[NamespaceInfo]:
    """Sets the default TTL of entries and the idle TTL of the namespace. None removes a setting."""
    body = {"default_ttl_seconds": default_ttl_seconds, "idle_ttl_seconds": idle_ttl_seconds}
    request = namespace.write("PUT", "", encode(body), idempotency_key=idempotency_key)
    return NamespaceInfo.of((yield from received(request)))


def clear(namespace: Resource, *, idempotency_key: str | None = None) -> Flow[int]:
    """Deletes the namespace. Returns the number of deleted entries."""
    request = namespace.write("DELETE", idempotency_key=idempotency_key)
    return int((yield from received(request))["deleted"])


def namespaces(resource: Resource) -> Items[NamespaceInfo]:
    """Yields the namespaces."""
    query: dict[str, QueryValue] = {"limit": MAX_PAGE_SIZE}
    while True:
        page = yield from received(resource.read("/v1/kv", query))
        for namespace in page["namespaces"]:
            yield Emit(NamespaceInfo.of(namespace))
        query["cursor"] = page.get("next_cursor")
        if not query["cursor"]:
            return


def entry_of(data: Mapping[str, Any]) -> Entry:
    body = data["body"].encode() if "body" in data else base64.b64decode(data["base64"])
    expires_at = data.get("expires_at")
    return Entry(
        key=data["key"],
        body=body,
        content_type=data["content_type"],
        etag=data.get("etag"),
        expires_at=time_of(expires_at) if expires_at else None,
    )


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
