"""The API key of the caller."""

from __future__ import annotations

from .._flow import Flow
from .._place import Place
from ..models import ApiKey
from .receipts import received


def current(place: Place) -> Flow[ApiKey]:
    """The name and the rights of the API key."""
    return ApiKey.of((yield from received(place.read("/v1/api-keys/current"))))
