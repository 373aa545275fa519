"""Webhook endpoints. Writes are not retried if the server may already have performed them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._flow import Emit, Flow, Items
from .._json import encode
from .._resource import QueryValue, Resource, segment
from ..models import FailedDelivery, PendingDeliveries, PendingDelivery, Webhook
from .receipts import done, received

KEEP = "keep"
"""Default for `secret`: leaves the secret unchanged."""


def listed(resource: Resource) -> Flow[list[Webhook]]:
    """Returns the endpoints, without their secrets."""
    found = yield from received(resource.read("/v1/webhooks"))
    return [Webhook.of(webhook) for webhook in found["webhooks"]]


def create(resource: Resource, url: str, events: Sequence[str], *, secret: str | None = None) -> Flow[Webhook]:
    """Creates an endpoint. The result contains the secret."""
    body: dict[str, Any] = {"url": url, "events": list(events)}
    if secret is not None:
        body["secret"] = secret
    request = resource.write("POST", "/v1/webhooks", encode(body), is_repeatable=False)
    return Webhook.of((yield from received(request)))


def get(resource: Resource, id: str) -> Flow[Webhook]:
    """Returns an endpoint, without its secret."""
    return Webhook.of((yield from received(resource.read(f"/v1/webhooks/{segment(id)}"))))


def update(
    resource: Resource,
    id: str,
    *,
    url: str | None = None,
    events: Sequence[str] | None = None,
    secret: str | None = KEEP,
) -> Flow[Webhook]:
    """Changes an endpoint. `secret=None` sets a new secret. The old secret also signs events for one more day."""
    body: dict[str, Any] = {}
    if url is not None:
        body["url"] = url
    if events is not None:
        body["events"] = list(events)
    if secret != KEEP:
        body["secret"] = secret
    request = resource.write("PATCH", f"/v1/webhooks/{segment(id)}", encode(body), is_repeatable=False)
    return Webhook.of((yield from received(request)))


def delete(resource: Resource, id: str) -> Flow[None]:
    """Deletes an endpoint."""
    yield from done(resource.write("DELETE", f"/v1/webhooks/{segment(id)}", is_repeatable=False))


def pending(resource: Resource, id: str, *, limit: int = 100) -> Flow[PendingDeliveries]:
    """Returns up to `limit` pending events (maximum: 100), and the total number."""
    found = yield from received(resource.read(f"/v1/webhooks/{segment(id)}/pending", {"limit": limit}))
    return PendingDeliveries([PendingDelivery.of(delivery) for delivery in found["pending"]], found["total"])


def failed(resource: Resource, id: str) -> Items[FailedDelivery]:
    """Yields the events that could not be delivered to an endpoint."""
    query: dict[str, QueryValue] = {"limit": 1_000}
    while True:
        page = yield from received(resource.read(f"/v1/webhooks/{segment(id)}/failed", query))
        for delivery in page["failed"]:
            yield Emit(FailedDelivery.of(delivery))
        query["cursor"] = page.get("next_cursor")
        if not query["cursor"]:
            return


def replay(resource: Resource, id: str, events: Sequence[str] | None = None) -> Flow[int]:
    """Resends the failed events in `events`, or all failed events. Returns the number of resent events."""
    body = encode({} if events is None else {"events": list(events)})
    request = resource.write("POST", f"/v1/webhooks/{segment(id)}/replay", body, is_repeatable=False)
    return int((yield from received(request))["replayed"])
