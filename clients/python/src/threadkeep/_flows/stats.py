from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._resource import Resource
from .receipts import valued


def stats(resource: Resource) -> Flow[dict[str, Any]]:
    """Returns one replica's statistics for the last minute: busiest and largest threads, routes, and store calls."""
    return (yield from valued(resource.read("/v1/stats"), dict))
