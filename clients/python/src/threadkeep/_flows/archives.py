from __future__ import annotations

from datetime import datetime

from .._flow import Emit, Flow, Items
from .._omitted import OMITTED, passed
from .._resource import QueryValue, Resource, segment
from ..models import Archive, HistoryItem, ThreadInfo
from .receipts import received


def listed(resource: Resource, since: datetime | None = None) -> Items[Archive]:
    """Yields ended threads without their states, in the order in which they ended."""
    query: dict[str, QueryValue] = {"since": since.isoformat() if since else None, "limit": 1_000}
    while True:
        page = yield from received(resource.read("/v1/archives", query))
        for archive in page["archives"]:
            yield Emit(Archive.of(archive))
        query["cursor"] = page.get("next_cursor")
        if not query["cursor"]:
            return


def get(resource: Resource, id: str, *, life: str = OMITTED) -> Flow[Archive]:
    """Returns an ended thread with its final state."""
    return Archive.of((yield from received(resource.read(f"/v1/archives/{segment(id)}", passed(life=life)))))


def history(resource: Resource, id: str, *, life: str = OMITTED) -> Items[HistoryItem]:
    """Yields the final history of an ended thread, oldest first."""
    query: dict[str, QueryValue] = {**passed(life=life), "limit": 1_000}
    while True:
        page = yield from received(resource.read(f"/v1/archives/{segment(id)}/history", query))
        for item in page["items"]:
            yield Emit(HistoryItem.of(item))
        if page.get("next_cursor") is None:
            return
        query["after"] = page["next_cursor"]


def restore(resource: Resource, id: str, *, life: str = OMITTED) -> Flow[ThreadInfo]:
    """Restores an ended thread, possibly even if it raises `TransportError`, `Unavailable` or `ServerError`."""
    path = f"/v1/archives/{segment(id)}/restore"
    request = resource.write("POST", path, query=passed(life=life), is_repeatable=False)
    return ThreadInfo.of((yield from received(request)))
