"""Figures of the server."""

from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._place import Place
from .receipts import received


def stats(place: Place) -> Flow[dict[str, Any]]:
    """The busiest and largest threads, the routes and the store of the replica that answers, in the last minute."""
    found: dict[str, Any] = yield from received(place.read("/v1/stats"))
    return found
