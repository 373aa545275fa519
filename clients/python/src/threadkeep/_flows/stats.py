from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._place import Place
from .receipts import valued


def stats(place: Place) -> Flow[dict[str, Any]]:
    """Returns figures of this replica for the last minute: busiest and largest threads, routes and store."""
    return (yield from valued(place.read("/v1/stats"), dict))
