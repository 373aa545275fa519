from __future__ import annotations

from agent_framework import AgentSession, SessionStore

from .._adapter import AsyncConnected, AsyncConnection, checked_prefix, digest, namespace_name
from .._json import decode, encode
from ..aclient import AsyncThreadkeep


class ThreadkeepSessionStore(AsyncConnected, SessionStore):
    """Stores snapshots of sessions in key-value entries of up to 1 MiB. The last `set` wins.

    A snapshot expires `ttl_seconds` after it was set. Reading does not extend its lifetime. Without `ttl_seconds`, a
    snapshot never expires. Use a different `prefix` for each framework. Without `client`, the store creates a client,
    and `close` closes it.
    """

    def __init__(
        self,
        *,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "agent-framework",
        ttl_seconds: int | None = None,
    ) -> None:
        super().__init__()
        self._ttl_seconds = ttl_seconds
        self._connection = AsyncConnection(client, base_url, api_key)
        self._entries = self._connection.client.kv(namespace_name(checked_prefix(prefix), "sessions"))

    async def get(self, session_id: str) -> AgentSession | None:
        """Returns the session with this ID as a new object, or None. Raises `ValueError` if the ID is empty."""
        self.validate_session_id(session_id)
        entry = await self._entries.get(digest(session_id))
        return None if entry is None else AgentSession.from_dict(decode(entry.body))

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Stores a session, and replaces an earlier snapshot.

        Raises `TypeError` for a subclass of `AgentSession`, and for state values of unregistered types. Raises
        `ValueError` for an empty ID, and for numbers that are not finite.
        """
        self.validate_session_id(session_id)
        if type(session) is not AgentSession:
            raise TypeError("Only sessions of the class AgentSession can be stored.")
        body = encode(session.to_dict())
        await self._entries.put(
            digest(session_id), body, content_type="application/json", ttl_seconds=self._ttl_seconds
        )

    async def delete(self, session_id: str) -> None:
        """Deletes a session if it exists. Raises `ValueError` if the ID is empty."""
        self.validate_session_id(session_id)
        await self._entries.delete(digest(session_id))
