"""Figures of the server."""

from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._place import Place
from .receipts import valued


def stats(place: Place) -> Flow[dict[str, Any]]:
    """The busiest and largest threads, the routes and the store of the replica that answers, in the last minute."""
    return (yield from valued(place.read("/v1/stats"), dict))
