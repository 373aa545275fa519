from __future__ import annotations

from .._flow import Flow
from .._resource import Resource, segment
from ..models import Erasure, OwnerInfo
from .receipts import received


def get(resource: Resource, owner: str) -> Flow[OwnerInfo]:
    """Returns how much data an owner has."""
    return OwnerInfo.of((yield from received(resource.read(f"/v1/owners/{segment(owner)}"))))


def erase(resource: Resource, owner: str) -> Flow[Erasure]:
    """Erases an owner and all their threads. Repeats the request until all data is erased."""
    threads = archives = 0
    while True:
        part = Erasure.of((yield from received(resource.read(f"/v1/owners/{segment(owner)}", method="DELETE"))))
        threads += part.threads
        archives += part.archives
        if part.complete:
            return Erasure(threads, archives, True)
