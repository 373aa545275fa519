"""Builds requests to a path on the server."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ._http.message import Request
from ._json import encode

QueryValue = str | int | bool | Sequence[str] | None
JSON = "application/json"
DOT_SEGMENTS = (".", "..")
"""Names that a URL cannot contain, because URL libraries resolve them."""


class Resource:
    def __init__(self, path: str, headers: Mapping[str, str], name: str = "", *, has_login: bool = False) -> None:
        self.path = path
        self.headers = headers
        self.name = name
        """Name for `repr`, without secrets."""
        self.has_login = has_login
        """Whether the headers have a user's login. Requests with a login must use signed thread IDs."""

    @property
    def has_api_key(self) -> bool:
        """Whether the headers have an API key. Requests with an API key use thread IDs without a signature."""
        return "authorization" in self.headers and not self.has_login

    def at(self, path: str, name: str) -> Resource:
        return Resource(path, self.headers, name, has_login=self.has_login)

    def read(
        self,
        suffix: str = "",
        query: Mapping[str, QueryValue] | None = None,
        *,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        extra_seconds: float = 0,
    ) -> Request:
        """Builds a read, or another request that is safe to repeat."""
        sent = dict(self.headers)
        add_headers(sent, headers or {})
        data = None
        if body is not None:
            sent["content-type"] = JSON
            data = encode(body)
        return Request(method, target(self.path + suffix, query), sent, data, True, extra_seconds)

    def write(
        self,
        method: str,
        suffix: str = "",
        body: bytes | None = None,
        *,
        query: Mapping[str, QueryValue] | None = None,
        headers: Mapping[str, str | None] | None = None,
        content_type: str = JSON,
        if_match: str | int | None = None,
        idempotency_key: str | None = None,
        is_repeatable: bool = True,
        extra_seconds: float = 0,
    ) -> Request:
        sent = dict(self.headers)
        sent["idempotency-key"] = idempotency_key or new_key()
        if body is not None:
            sent["content-type"] = content_type
        if if_match is not None:
            sent["if-match"] = f'"{if_match}"' if isinstance(if_match, int) else if_match
        if headers or if_match is not None or idempotency_key is not None or content_type != JSON:
            add_headers(sent, {**sent, **(headers or {})})
        return Request(method, target(self.path + suffix, query), sent, body, is_repeatable, extra_seconds)


class ThreadResource(Resource):
    def __init__(
        self,
        path: str,
        headers: Mapping[str, str],
        id: str,
        signed_id: str | None = None,
        ttl_seconds: int | None = None,
        *,
        has_login: bool = False,
    ) -> None:
        super().__init__(path, headers, repr(without_signature(id)), has_login=has_login)
        self.id = id
        self.signed_id = signed_id
        self.ttl = {} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}

    def with_turn(self, token: str) -> ThreadResource:
        headers = dict(self.headers)
        add_headers(headers, {"x-turn-token": token})
        resource = ThreadResource(self.path, headers, self.id, self.signed_id, has_login=self.has_login)
        resource.ttl = self.ttl
        return resource


def new_key() -> str:
    return secrets.token_hex(16)


def segment(name: str) -> str:
    """Returns `name` as a path segment. Raises `ValueError` for `.` and `..`, which a URL cannot contain."""
    if name in DOT_SEGMENTS:
        raise ValueError(f"A URL cannot contain the name {name!r}.")
    return quote(name, safe="")


def without_signature(id: str) -> str:
    """Returns `id` without its signature, which must not appear in logs. Keeps the separator."""
    return re.sub("(?<=[;.]).*", "", id, flags=re.DOTALL)


def target(path: str, query: Mapping[str, QueryValue] | None) -> str:
    if not query:
        return path
    pairs = []
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        for one in (str(value),) if isinstance(value, (str, int)) else value:
            pairs.append(f"{quote(name, safe='')}={quote(one, safe='')}")
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def add_headers(sent: dict[str, str], headers: Mapping[str, str | None]) -> None:
    """Adds headers that have a value. Raises `ValueError` for a value that would break the request."""
    for name, value in headers.items():
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"The value for {name} must be visible ASCII, without a line end or a byte order mark.")
        sent[name] = value
