"""Sessions, agents and messages, for RepositorySessionManager."""

from __future__ import annotations

import json
from types import TracebackType
from typing import TYPE_CHECKING, Any

from strands.session import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from .._adapter import Connection, checked_prefix, digest, namespace_name
from .._json import encode
from .._place import JSON, new_key
from ..client import Threadkeep
from ..errors import VersionMismatch
from ..namespace import Namespace

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

SESSION = "session"
NUMBER_DIGITS = 12


class ThreadkeepSessionRepository(SessionRepository):
    """Keeps each session, agent and message as an entry of at most 1 MiB. All IDs may be any text.

    A message number is given once: if two managers of one session append at the same time, the second one gets a
    `SessionException`, and the first one's message stays. Sessions stay until they are deleted or, with `ttl_seconds`,
    until they were not used for that time. Repositories with different prefixes have different sessions. Threads may
    share them. Without `client`, the repository has one of its own, and `close` closes it.
    """

    def __init__(
        self,
        *,
        client: Threadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "strands",
        ttl_seconds: int | None = None,
    ) -> None:
        self._prefix = checked_prefix(prefix)
        self._ttl_seconds = ttl_seconds
        self._connection = Connection(client, base_url, api_key)

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Creates a session. Raises `SessionException` if it exists."""
        if self._ttl_seconds is not None:
            self._entries(session.session_id).configure(idle_ttl_seconds=self._ttl_seconds)
        self._create(session.session_id, SESSION, session.to_dict(), f"Session {session.session_id}")
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session, or None."""
        found = self._read(session_id, SESSION)
        return None if found is None else Session.from_dict(found)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Deletes a session with everything in it. Raises `SessionException` if it does not exist.

        An agent that still uses the session would go on writing to it.
        """
        if not self._entries(session_id).drop():
            raise SessionException(f"Session {session_id} does not exist")

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Creates an agent. Raises `SessionException` if it exists."""
        agent_id = session_agent.agent_id
        self._create(session_id, _agent_key(agent_id), session_agent.to_dict(), f"Agent {agent_id}")

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """An agent, or None."""
        found = self._read(session_id, _agent_key(agent_id))
        return None if found is None else SessionAgent.from_dict(found)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Replaces an agent, and keeps its `created_at`. Raises `SessionException` if it does not exist."""
        agent_id = session_agent.agent_id
        self._update(session_id, _agent_key(agent_id), session_agent, f"Agent {agent_id}")

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Creates a message. Raises `SessionException` if there is one with its number."""
        number = session_message.message_id
        self._create(
            session_id, _message_key(agent_id, number), session_message.to_dict(), f"Message {number} of {agent_id}"
        )

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """A message, or None."""
        found = self._read(session_id, _message_key(agent_id, message_id))
        return None if found is None else SessionMessage.from_dict(found)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Replaces a message, and keeps its `created_at`. Raises `SessionException` if it does not exist."""
        number = session_message.message_id
        self._update(session_id, _message_key(agent_id, number), session_message, f"Message {number} of {agent_id}")

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent by their numbers, without the first `offset` of them."""
        entries = self._entries(session_id)
        keys = [entry.key for entry in entries.keys(_messages_prefix(agent_id))]
        keys = keys[offset : None if limit is None else offset + limit]
        found = entries.get_many(keys)
        return [SessionMessage.from_dict(json.loads(found[key].body)) for key in keys if key in found]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Creates the state of a multi-agent. Raises `SessionException` if it exists."""
        self._create(
            session_id, _multi_agent_key(multi_agent.id), multi_agent.serialize_state(), f"MultiAgent {multi_agent.id}"
        )

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The state of a multi-agent, or None."""
        return self._read(session_id, _multi_agent_key(multi_agent_id))

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Replaces the state of a multi-agent. Raises `SessionException` if it does not exist."""
        try:
            self._put(session_id, _multi_agent_key(multi_agent.id), multi_agent.serialize_state(), if_match="*")
        except VersionMismatch as error:
            raise SessionException(f"MultiAgent {multi_agent.id} does not exist in session {session_id}") from error

    def close(self) -> None:
        """Closes the client if it is the repository's own. May be called twice."""
        self._connection.close()

    def __enter__(self) -> ThreadkeepSessionRepository:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _entries(self, session_id: str) -> Namespace:
        return self._connection.client.kv(namespace_name(self._prefix, "session", session_id))

    def _read(self, session_id: str, key: str) -> dict[str, Any] | None:
        entry = self._entries(session_id).get(key)
        return None if entry is None else json.loads(entry.body)

    def _put(self, session_id: str, key: str, value: dict[str, Any], **condition: Any) -> None:
        # with a key of ours, the client repeats a put whose answer is lost
        self._entries(session_id).put(key, encode(value), content_type=JSON, idempotency_key=new_key(), **condition)

    def _create(self, session_id: str, key: str, value: dict[str, Any], name: str) -> None:
        try:
            self._put(session_id, key, value, if_absent=True)
        except VersionMismatch as error:
            raise SessionException(f"{name} exists already in session {session_id}") from error

    def _update(self, session_id: str, key: str, record: SessionAgent | SessionMessage, name: str) -> None:
        while True:
            entry = self._entries(session_id).get(key)
            if entry is None:
                raise SessionException(f"{name} does not exist in session {session_id}")
            record.created_at = json.loads(entry.body)["created_at"]
            try:
                return self._put(session_id, key, record.to_dict(), if_match=entry.etag)
            except VersionMismatch:
                continue


def _agent_key(agent_id: str) -> str:
    return f"agents/{digest(agent_id)}"


def _multi_agent_key(multi_agent_id: str) -> str:
    return f"multi_agents/{digest(multi_agent_id)}"


def _messages_prefix(agent_id: str) -> str:
    return f"messages/{digest(agent_id)}/"


def _message_key(agent_id: str, number: int) -> str:
    """The key of a message. In the order of their bytes, the keys of an agent are in the order of the numbers."""
    if not isinstance(number, int) or not 0 <= number < 10**NUMBER_DIGITS:
        raise ValueError(f"message_id=<{number}> | message id must be an integer from 0 to {10**NUMBER_DIGITS - 1}")
    return f"{_messages_prefix(agent_id)}{number:0{NUMBER_DIGITS}}"
