from __future__ import annotations

from typing import Any

from agents import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from .._adapter import TTL_SECONDS, AsyncConnected, AsyncConnection, checked_prefix, thread_id
from ..aclient import AsyncThreadkeep


class ThreadkeepSession(AsyncConnected, SessionABC):
    """Stores a conversation. `session_id` may be any string. Event loops and processes may share a conversation.

    The conversation expires `ttl_seconds` after its last use. Sessions with different prefixes are separate. Use a
    different `prefix` for each framework. Without `client`, the session creates a client, and `close` closes it.
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
        """Returns items, oldest first. With a limit here or in the session settings, returns only the newest items."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is None:
            return [item.value async for item in self._history]
        return [item.value for item in await self._history.latest(limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items in atomic writes of up to 1,000. Raises `TooLarge` if one exceeds 2 MiB or the history is full."""
        await self._history.append_many(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes and returns the newest item, or returns None. Two concurrent callers never get the same item."""
        for item in await self._history.take():
            popped: TResponseInputItem = item.value
            return popped
        return None

    async def clear_session(self) -> None:
        """Removes all items. You can still add items to the conversation."""
        await self._history.clear()
