from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from agent_framework import HistoryProvider, Message
from agent_framework._sessions import filter_new_messages

from .. import operations as ops
from .._adapter import TTL_SECONDS, AsyncConnected, AsyncConnection, attempts, checked_prefix, digest, tag_of, thread_id
from .._json import encode
from ..aclient import AsyncThreadkeep
from ..errors import IdempotencyKeyReused, VersionMismatch
from ..thread import AsyncThread

MAX_OPERATIONS = 1_000
"""Maximum number of operations in a merge."""


class ThreadkeepHistoryProvider(AsyncConnected, HistoryProvider):
    """Stores the messages of each session in the history of a thread. Several processes may share a session.

    A history has up to 8 MiB, and expires `ttl_seconds` after its last use. `skip_excluded` omits messages that a
    compaction has marked as excluded. Use a different `prefix` for each framework. Without `client`, the provider
    creates a client, and `close` closes it.
    """

    DEFAULT_SOURCE_ID = "threadkeep"

    def __init__(
        self,
        source_id: str = DEFAULT_SOURCE_ID,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "agent-framework",
        ttl_seconds: int = TTL_SECONDS,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        self._prefix = checked_prefix(prefix)
        self._ttl_seconds = ttl_seconds
        self._connection = AsyncConnection(client, base_url, api_key)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Returns the messages of a session, oldest first."""
        messages = [Message.from_dict(item.value) async for item in self._thread(session_id).history]
        if self.skip_excluded:
            messages = [message for message in messages if not message.additional_properties.get("_excluded")]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Appends the messages that the session lacks, in atomic writes of up to 1,000 messages.

        Messages are identified by `message_id`. If an ID is missing or not unique, `filter_new_messages` selects the
        new messages. The write then requires an unchanged history, and is retried after a change.
        """
        thread = self._thread(session_id)
        if not await _save_by_ids(thread, messages):
            await _save_by_order(thread, messages)

    async def clear(self, session_id: str) -> None:
        """Removes the messages of a session."""
        await self._thread(session_id).history.clear()

    def _thread(self, session_id: str | None) -> AsyncThread:
        if not session_id:
            raise ValueError("A history belongs to a session: pass a session_id that is not empty.")
        id = thread_id(self._prefix, self.source_id, session_id)
        return self._connection.client.thread(id, ttl_seconds=self._ttl_seconds)


async def _save_by_ids(thread: AsyncThread, messages: Sequence[Message]) -> bool:
    """Appends the messages with new IDs. Returns false if an ID is missing or belongs to more than one message."""
    named = {digest(message.message_id): message for message in messages if message.message_id is not None}
    if len(named) < len(messages):
        return False
    try:
        await _append(thread, list(named.items()))
    except IdempotencyKeyReused:
        return False
    return True


async def _save_by_order(thread: AsyncThread, messages: Sequence[Message]) -> None:
    for _ in attempts():
        tag = tag_of((await thread.info()).etag)
        stored = [item async for item in thread.history]
        taken = {item.id for item in stored}
        named = []
        for message in filter_new_messages([Message.from_dict(item.value) for item in stored], messages):
            id = secrets.token_hex(24) if message.message_id is None else digest(message.message_id)
            if id in taken:
                id = secrets.token_hex(24)
            taken.add(id)
            named.append((id, message))
        try:
            return await _append(thread, named, if_match=tag)
        except VersionMismatch:
            continue


async def _append(thread: AsyncThread, named: Sequence[tuple[str, Message]], if_match: str | None = None) -> None:
    """Appends messages in batches. Only the write of the first batch is conditional."""
    operations = [ops.append(message.to_dict(), id) for id, message in named]
    if len(operations) > MAX_OPERATIONS:
        encode(operations)  # raises an error for values that are not JSON before the first batch is sent
    for start in range(0, len(operations), MAX_OPERATIONS):
        await thread.merge(operations[start : start + MAX_OPERATIONS], if_match=None if start else if_match)
