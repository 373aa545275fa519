from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from .._flow import Flow
from .._http.message import Members, Request, Response
from ..errors import InvalidResponse
from ..models import Receipt

T = TypeVar("T")


def receipt_of(response: Response, data: Mapping[str, Any]) -> Receipt:
    return Receipt.of(data, etag=response.etag, replayed="idempotency-replayed" in response.headers)


def written(request: Request) -> Flow[Receipt]:
    response: Response = yield request
    return receipt_of(response, response.members())


def received(request: Request) -> Flow[Members]:
    response: Response = yield request
    return response.members()


def valued(request: Request, kind: type[T] = object) -> Flow[T]:  # type: ignore[assignment]
    response: Response = yield request
    return response.json(kind)


def done(request: Request) -> Flow[None]:
    yield request


def required(value: T | None, name: str) -> T:
    if value is None:
        raise InvalidResponse(f"The response has no `{name}`.")
    return value
