"""Receipts in responses."""

from __future__ import annotations

from typing import Any

from .._flow import Flow
from .._http.message import Request, Response
from ..models import Receipt


def receipt_of(response: Response, data: Any = None) -> Receipt:
    """The receipt in a response."""
    headers = response.headers
    data = response.json() if data is None else data
    return Receipt.of(data, etag=headers.get("etag"), replayed="idempotency-replayed" in headers)


def written(request: Request) -> Flow[Receipt]:
    """Performs a write, and returns its receipt."""
    response: Response = yield request
    return receipt_of(response)


def received(request: Request) -> Flow[Any]:
    """Sends a request, and returns the body of its response."""
    response: Response = yield request
    return response.json()


def done(request: Request) -> Flow[None]:
    """Sends a request whose response has nothing to say."""
    yield request
