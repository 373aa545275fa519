from __future__ import annotations

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from .._adapter import TTL_SECONDS, checked_prefix, thread_id
from .._dual import DualAdapter, DualConnection, collected
from .._flow import Flow
from .._flows import history
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep


class ThreadkeepChatMessageHistory(DualAdapter, BaseChatMessageHistory):
    """Stores a session's messages, for programs that use LangChain's chat histories. `session_id` may be any string.

    The session expires `ttl_seconds` after its last use. One object serves blocking and async callers. Use a different
    `prefix` for each framework.
    """

    def __init__(
        self,
        session_id: str,
        *,
        client: Threadkeep | AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "langchain",
        ttl_seconds: int = TTL_SECONDS,
    ) -> None:
        self.session_id = session_id
        self._connection = DualConnection(client, base_url, api_key)
        self._thread = self._connection.thread(thread_id(checked_prefix(prefix), session_id), ttl_seconds)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, oldest first. Each access reads them from the server."""
        return self._connection.run(self._messages())

    async def aget_messages(self) -> list[BaseMessage]:
        """Returns all messages, oldest first."""
        return await self._connection.arun(self._messages())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Adds messages in atomic writes of up to 1,000 messages. Raises `TooLarge` if the history is full."""
        self._connection.run(self._add(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Adds messages in atomic writes of up to 1,000 messages. Raises `TooLarge` if the history is full."""
        await self._connection.arun(self._add(messages))

    def clear(self) -> None:
        """Removes all messages. You can still add messages to the session."""
        self._connection.run(history.clear(self._thread))

    async def aclear(self) -> None:
        """Removes all messages. You can still add messages to the session."""
        await self._connection.arun(history.clear(self._thread))

    def _messages(self) -> Flow[list[BaseMessage]]:
        items = yield from collected(history.items(self._thread))
        return messages_from_dict([item.value for item in items])

    def _add(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        yield from history.append_many(self._thread, [message_to_dict(message) for message in messages])
