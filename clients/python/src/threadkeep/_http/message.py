from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from .._json import decode
from ..errors import APIError, InvalidResponse, class_of

T = TypeVar("T")

TAG = re.compile(r'(?:W/)?"([0-9]+-[0-9a-f]{16})\b')
"""Matches an ETag, such as `"7-0123456789abcdef"`, even if a proxy has weakened (`W/`) or extended it (`-gzip`)."""


class Members(dict[str, Any]):
    """Members of a response object. Access to a missing member raises `InvalidResponse`."""

    def __missing__(self, name: str) -> Any:
        raise InvalidResponse(f"The response has no `{name}`.")


class Request(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None
    is_repeatable: bool = True
    """Whether to retry the request even if the server may have performed it."""
    extra_seconds: float = 0
    """Time for which the server may wait before it answers, for example for a turn."""

    def __repr__(self) -> str:
        return f"Request({self.method})"  # headers contain secrets, and paths contain names


class Response(NamedTuple):
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Response({self.status})"  # headers and body may contain secrets

    def json(self, kind: type[T] = object) -> T:  # type: ignore[assignment]
        try:
            value = decode(self.body)
        except ValueError:
            # omits the cause, because its message would reveal part of the body
            raise InvalidResponse("The response is not JSON.") from None
        if not isinstance(value, kind):
            raise InvalidResponse("The response has JSON of another kind.")
        return value

    @property
    def etag(self) -> str | None:
        """The server's ETag, or the thread's version if a proxy removed the ETag. `If-Match` accepts either."""
        tag = TAG.match(self.headers.get("etag", ""))
        text = tag[1] if tag else self.headers.get("x-thread-version")
        return f'"{text}"' if text else None

    def members(self) -> Members:
        return Members(self.json(dict))

    def error(self) -> APIError:
        try:
            problem = decode(self.body)
        except ValueError:
            problem = None
        seconds = self.headers.get("retry-after", "")
        return class_of(self.status)(
            self.status,
            problem if isinstance(problem, dict) else {},
            float(seconds) if seconds.isascii() and seconds.isdigit() else None,
        )


def is_success(status: int) -> bool:
    """Returns whether `status` is 2xx. Redirects count as errors."""
    return 200 <= status < 300


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Origin:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must begin with http:// or https:// and name a host.")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("base_url must have no user, no query and no fragment.")
        try:
            host = parts.hostname.encode("idna").decode()
        except UnicodeError:
            raise ValueError("base_url must name a valid host, whose labels have 1 to 63 characters.") from None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, host, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def serialize(origin: Origin, request: Request) -> bytes:
    lines = [f"{request.method} {origin.path}{request.target} HTTP/1.1", f"host: {origin.authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if request.body is None:
        if request.method not in ("GET", "HEAD"):
            lines.append("content-length: 0")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
    lines.append(f"content-length: {len(request.body)}\r\n\r\n")
    return "\r\n".join(lines).encode("ascii") + request.body
