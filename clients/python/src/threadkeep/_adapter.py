"""What all adapters share: their client, and names for what frameworks name."""

from __future__ import annotations

import hashlib

from .aclient import AsyncThreadkeep
from .client import Threadkeep

TTL_SECONDS = 2_592_000
"""How long an adapter's threads live without use: 30 days."""

MAX_PREFIX_CHARACTERS = 20


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


def digest(*parts: str) -> str:
    """48 hex digits that name these texts, in this order: `("a", "bc")` differs from `("ab", "c")`."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()[:48]


def thread_id(prefix: str, *parts: str) -> str:
    """The ID of the thread for these texts."""
    return f"thrd_{digest(prefix, *parts)}"


def namespace_name(prefix: str, *parts: str) -> str:
    """The namespace of the entries for these texts."""
    return f"{prefix}.{digest(prefix, *parts)[:40]}"


def checked_prefix(prefix: str) -> str:
    """The prefix, if it can begin the names of namespaces. Raises `ValueError` if it cannot."""
    if not 1 <= len(prefix) <= MAX_PREFIX_CHARACTERS or not all("!" <= c <= "~" for c in prefix):
        raise ValueError(f"A prefix has 1 to {MAX_PREFIX_CHARACTERS} visible ASCII characters.")
    return prefix


def missing(extra: str, error: ImportError) -> ImportError:
    """Says which extra installs the framework that an adapter is for."""
    return ImportError(f'{error}. Install the framework with: pip install "threadkeep[{extra}]"')
