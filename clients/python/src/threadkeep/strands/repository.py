from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from strands.session import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from .._adapter import Connected, Connection, attempts, checked_prefix, digest, namespace_name, tag_of
from .._json import decode, encode
from .._resource import JSON, new_key
from ..client import Threadkeep
from ..errors import VersionMismatch
from ..namespace import Namespace

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

NUMBER_DIGITS = 12


class ThreadkeepSessionRepository(Connected, SessionRepository):
    """Stores each session, agent and message as an entry of up to 1 MiB, for `RepositorySessionManager`.

    IDs may be any string. Each message number is used only once: if two managers of one session append at the same
    time, the first message is kept, and the second manager gets a `SessionException`. With `ttl_seconds`, a session
    expires `ttl_seconds` after its last use. Otherwise it never expires. Repositories with different prefixes are
    separate. Threads may share a repository. Use a different `prefix` for each framework. Without `client`, the
    repository creates a client, and `close` closes it.
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
        """Creates a session. Raises `SessionException` if the session exists."""
        if self._ttl_seconds is not None:
            self._entries(session.session_id).configure(idle_ttl_seconds=self._ttl_seconds)
        self._create(_session(session.session_id), session.to_dict())
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """Returns a session, or None."""
        found = self._read(_session(session_id))
        return None if found is None else Session.from_dict(found)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Deletes a session and everything in it. Raises `SessionException` if the session does not exist."""
        if not self._entries(session_id).clear():
            raise SessionException(f"{_session(session_id).name} does not exist")

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Creates an agent. Raises `SessionException` if the agent exists, or if the session does not exist."""
        self._require(_session(session_id))
        self._create(_agent(session_id, session_agent.agent_id), session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """Returns an agent, or None."""
        found = self._read(_agent(session_id, agent_id))
        return None if found is None else SessionAgent.from_dict(found)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Replaces an agent, but keeps its `created_at`. Raises `SessionException` if the agent does not exist."""
        self._update(_agent(session_id, session_agent.agent_id), session_agent)

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Creates a message. Raises `SessionException` if its number is in use, or if the agent does not exist."""
        self._require(_agent(session_id, agent_id))
        self._create(_message(session_id, agent_id, session_message.message_id), session_message.to_dict())

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """Returns a message, or None."""
        found = self._read(_message(session_id, agent_id, message_id))
        return None if found is None else SessionMessage.from_dict(found)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Replaces a message, but keeps its `created_at`. Raises `SessionException` if the message does not exist."""
        self._update(_message(session_id, agent_id, session_message.message_id), session_message)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """Returns up to `limit` messages of an agent, sorted by number. Skips the first `offset` messages."""
        entries = self._entries(session_id)
        keys = [entry.key for entry in entries.keys(_messages_prefix(agent_id))]
        keys = keys[offset : None if limit is None else offset + limit]
        found = entries.get_many(keys)
        return [SessionMessage.from_dict(decode(found[key].body)) for key in keys if key in found]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Creates a multi-agent's state. Raises `SessionException` if the state exists, or the session does not."""
        self._require(_session(session_id))
        self._create(_multi_agent(session_id, multi_agent.id), multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """Returns the state of a multi-agent, or None."""
        return self._read(_multi_agent(session_id, multi_agent_id))

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Replaces the state of a multi-agent. Raises `SessionException` if the state does not exist."""
        ref = _multi_agent(session_id, multi_agent.id)
        try:
            self._put(ref, multi_agent.serialize_state(), if_match="*")
        except VersionMismatch as error:
            raise SessionException(f"{ref.name} does not exist") from error

    def _entries(self, session_id: str) -> Namespace:
        return self._connection.client.kv(namespace_name(self._prefix, "session", session_id))

    def _read(self, ref: _EntryRef) -> dict[str, Any] | None:
        entry = self._entries(ref.session_id).get(ref.key)
        return None if entry is None else decode(entry.body)

    def _require(self, ref: _EntryRef) -> None:
        if not any(True for _ in self._entries(ref.session_id).keys(ref.key)):
            raise SessionException(f"{ref.name} does not exist")

    def _create(self, ref: _EntryRef, value: dict[str, Any]) -> None:
        try:
            self._put(ref, value, if_absent=True)
        except VersionMismatch as error:
            raise SessionException(f"{ref.name} exists already") from error

    def _update(self, ref: _EntryRef, record: SessionAgent | SessionMessage) -> None:
        for _ in attempts():
            entry = self._entries(ref.session_id).get(ref.key)
            if entry is None:
                raise SessionException(f"{ref.name} does not exist")
            record.created_at = decode(entry.body)["created_at"]
            try:
                return self._put(ref, record.to_dict(), if_match=tag_of(entry.etag))
            except VersionMismatch:
                continue

    def _put(self, ref: _EntryRef, value: dict[str, Any], **condition: Any) -> None:
        # without an idempotency key, the client would not retry a put whose response is lost
        entries = self._entries(ref.session_id)
        entries.put(ref.key, encode(value), content_type=JSON, idempotency_key=new_key(), **condition)


class _EntryRef(NamedTuple):
    session_id: str
    key: str
    name: str
    """Name for error messages."""


def _session(session_id: str) -> _EntryRef:
    return _EntryRef(session_id, "session", f"Session {session_id}")


def _agent(session_id: str, agent_id: str) -> _EntryRef:
    return _EntryRef(session_id, f"agents/{digest(agent_id)}", f"Agent {agent_id} in session {session_id}")


def _multi_agent(session_id: str, id: str) -> _EntryRef:
    return _EntryRef(session_id, f"multi_agents/{digest(id)}", f"MultiAgent {id} in session {session_id}")


def _message(session_id: str, agent_id: str, number: int) -> _EntryRef:
    if not isinstance(number, int) or not 0 <= number < 10**NUMBER_DIGITS:
        raise ValueError(f"message_id=<{number}> | message id must be an integer from 0 to {10**NUMBER_DIGITS - 1}")
    name = f"Message {number} of agent {agent_id} in session {session_id}"
    return _EntryRef(session_id, f"{_messages_prefix(agent_id)}{number:0{NUMBER_DIGITS}}", name)


def _messages_prefix(agent_id: str) -> str:
    """Returns the key prefix for an agent's messages. Message keys sort by message number."""
    return f"messages/{digest(agent_id)}/"
