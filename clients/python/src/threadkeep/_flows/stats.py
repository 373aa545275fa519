from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._place import Place
from .receipts import valued


def stats(place: Place) -> Flow[dict[str, Any]]:
    """Returns one replica's statistics for the last minute: busiest and largest threads, routes, store."""
    return (yield from valued(place.read("/v1/stats"), dict))
