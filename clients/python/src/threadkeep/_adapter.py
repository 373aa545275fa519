"""Parts of all adapters: their client, and the names under which the server has the objects of frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from .aclient import AsyncThreadkeep
from .client import Threadkeep
from .errors import InvalidResponse, ThreadkeepError
from .thread_id import digest as digest_of

TTL_SECONDS = 2_592_000
"""How long an adapter's threads live without use: 30 days."""

MAX_PREFIX_CHARACTERS = 20
MAX_ATTEMPTS = 100
"""Maximum number of attempts at one conditional write."""

A = TypeVar("A", bound="AsyncConnected")
C = TypeVar("C", bound="Connected")


class AsyncConnection:
    """The client of an adapter: the caller's, or one of its own, which it closes."""

    def __init__(self, client: AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or AsyncThreadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    async def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        if self._is_own:
            await self.client.close()


class Connection:
    """The same, blocking."""

    def __init__(self, client: Threadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or Threadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        if self._is_own:
            self.client.close()


class AsyncConnected:
    """An adapter with a connection, which it closes."""

    _connection: AsyncConnection

    async def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        await self._connection.close()

    async def __aenter__(self: A) -> A:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Connected:
    """The same, blocking."""

    _connection: Connection

    def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        self._connection.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def digest(*parts: str) -> str:
    """48 hex digits that name these texts, in this order: `("a", "bc")` differs from `("ab", "c")`."""
    return digest_of(*(part.encode("utf-8", "surrogatepass") for part in parts))


def thread_id(prefix: str, *parts: str) -> str:
    """The ID of the thread for these texts."""
    return f"thrd_{digest(prefix, *parts)}"


def namespace_name(prefix: str, *parts: str) -> str:
    """The namespace of the entries for these texts."""
    return f"{prefix}.{digest(prefix, *parts)[:40]}"


def checked_prefix(prefix: str) -> str:
    """The prefix, if it can begin the names of namespaces. Raises `ValueError` if it cannot.

    Names consist of the prefix and of texts of the framework, so frameworks that have one prefix may have one name.
    """
    if not 1 <= len(prefix) <= MAX_PREFIX_CHARACTERS or not all("!" <= c <= "~" for c in prefix):
        raise ValueError(f"A prefix has 1 to {MAX_PREFIX_CHARACTERS} visible ASCII characters.")
    return prefix


def tag_of(etag: str | None) -> str:
    """The tag for a conditional write. Without one, the write would be unconditional."""
    if etag is None:
        raise InvalidResponse("The response has no ETag, so a proxy before the server has removed it.")
    return etag


def attempts() -> Iterator[int]:
    """Yields attempts at a conditional write. Raises `ThreadkeepError` when all of them have failed."""
    yield from range(MAX_ATTEMPTS)
    raise ThreadkeepError(
        "Conditional writes keep failing: others write all the time, or a proxy before the server alters ETags."
    )


def missing(extra: str, error: ImportError) -> ImportError:
    """Says which extra installs the framework that an adapter is for."""
    return ImportError(f'{error}. Install the framework with: pip install "threadkeep[{extra}]"')
