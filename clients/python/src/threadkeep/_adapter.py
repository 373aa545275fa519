from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from .aclient import AsyncThreadkeep
from .client import Threadkeep
from .errors import InvalidResponse, ThreadkeepError
from .thread_id import digest as digest_of

TTL_SECONDS = 2_592_000
"""Idle TTL of an adapter's threads: 30 days."""

MAX_PREFIX_CHARACTERS = 20
MAX_ATTEMPTS = 100

A = TypeVar("A", bound="AsyncConnected")
C = TypeVar("C", bound="Connected")


class AsyncConnection:
    """Connects an adapter through the caller's client. Without a client, creates one, which `close` closes."""

    def __init__(self, client: AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or AsyncThreadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    async def close(self) -> None:
        if self._is_own:
            await self.client.close()


class Connection:
    def __init__(self, client: Threadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or Threadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    def close(self) -> None:
        if self._is_own:
            self.client.close()


class AsyncConnected:
    _connection: AsyncConnection

    async def close(self) -> None:
        """Closes the client if the adapter created the client. Idempotent."""
        await self._connection.close()

    async def __aenter__(self: A) -> A:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Connected:
    _connection: Connection

    def close(self) -> None:
        """Closes the client if the adapter created the client. Idempotent."""
        self._connection.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def digest(*parts: str) -> str:
    """Returns 48 hex digits that identify `parts` in order: `("a", "bc")` differs from `("ab", "c")`."""
    return digest_of(*(part.encode("utf-8", "surrogatepass") for part in parts))


def thread_id(prefix: str, *parts: str) -> str:
    return f"thrd_{digest(prefix, *parts)}"


def namespace_name(prefix: str, *parts: str) -> str:
    return f"{prefix}.{digest(prefix, *parts)[:40]}"


def checked_prefix(prefix: str) -> str:
    """Validates the prefix of an adapter's namespaces. If frameworks share a prefix, their namespaces may collide."""
    if not 1 <= len(prefix) <= MAX_PREFIX_CHARACTERS or not all("!" <= c <= "~" for c in prefix):
        raise ValueError(f"A prefix has 1 to {MAX_PREFIX_CHARACTERS} visible ASCII characters.")
    return prefix


def tag_of(etag: str | None) -> str:
    """Returns `etag`. Raises an error for None, because a write with None would be unconditional."""
    if etag is None:
        raise InvalidResponse("The response has no ETag, so a proxy in front of the server has removed it.")
    return etag


def attempts() -> Iterator[int]:
    yield from range(MAX_ATTEMPTS)
    raise ThreadkeepError(
        "Conditional writes keep failing: others write all the time, or a proxy in front of the server alters ETags."
    )


def missing(extra: str, error: ImportError) -> ImportError:
    return ImportError(f'{error}. Install the framework with: pip install "threadkeep[{extra}]"')
