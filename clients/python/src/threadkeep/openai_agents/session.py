from __future__ import annotations

from typing import Any

from agents import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from .._adapter import TTL_SECONDS, AsyncConnected, AsyncConnection, checked_prefix, thread_id
from ..aclient import AsyncThreadkeep


class ThreadkeepSession(AsyncConnected, SessionABC):
    """Stores the conversation `session_id`, which may be any text. Event loops and processes may share it.

    The conversation expires after `ttl_seconds` without use. Sessions with different prefixes are separate. Adapters of
    other frameworks need another `prefix`. Without `client`, the session creates one, which `close` closes.
    """

    def __init__(
        self,
        session_id: str,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "openai-agents",
        ttl_seconds: int = TTL_SECONDS,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._connection = AsyncConnection(client, base_url, api_key)
        thread = self._connection.client.thread(thread_id(checked_prefix(prefix), session_id), ttl_seconds=ttl_seconds)
        self._history = thread.history

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns all items, or only the newest if this call or the settings have a limit, oldest first."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is None:
            return [item.value async for item in self._history]
        return [item.value for item in await self._history.latest(limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items in atomic steps of up to 1,000. Raises `TooLarge` for steps over 2 MiB and for a full history."""
        await self._history.append_many(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes and returns the newest item, or returns None. Concurrent callers get different items."""
        for item in await self._history.take():
            popped: TResponseInputItem = item.value
            return popped
        return None

    async def clear_session(self) -> None:
        """Removes all items. The conversation stays usable."""
        await self._history.clear()
