"""Owners of threads."""

from __future__ import annotations

from .._flow import Flow
from .._place import Place, segment
from ..models import Erasure, OwnerInfo
from .receipts import received


def get(place: Place, owner: str) -> Flow[OwnerInfo]:
    """How much an owner has."""
    return OwnerInfo.of((yield from received(place.read(f"/v1/owners/{segment(owner)}"))))


def erase(place: Place, owner: str) -> Flow[Erasure]:
    """Erases an owner with all threads, and repeats the call until nothing is left."""
    threads = archives = 0
    while True:
        part = Erasure.of((yield from received(place.read(f"/v1/owners/{segment(owner)}", method="DELETE"))))
        threads += part.threads
        archives += part.archives
        if part.complete:
            return Erasure(threads, archives, True)
