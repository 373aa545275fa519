from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.platform import time as platform_time
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

from .. import operations as ops
from .._adapter import (
    TTL_SECONDS,
    AsyncConnected,
    AsyncConnection,
    checked_prefix,
    digest,
    namespace_name,
    tag_of,
    thread_id,
)
from .._json import decode, encode
from ..aclient import AsyncThreadkeep
from ..errors import Destroyed, IdempotencyKeyReused, VersionMismatch
from ..models import Entry
from ..namespace import AsyncNamespace
from ..thread import AsyncThread
from . import events
from .revision import EVENTS, UPDATED, VALUE, Revision, Stored, stored, values


class ThreadkeepSessionService(AsyncConnected, BaseSessionService):
    """Stores sessions in threads. Several processes may share them.

    An event and its state change are one atomic write. The write fails if the stored session has changed since it was
    loaded. Sessions, users and apps expire `ttl_seconds` after their last use. Use a different `prefix` for each
    framework. Without `client`, the service creates a client, and `close` closes it.
    """

    def __init__(
        self,
        *,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "adk",
        ttl_seconds: int = TTL_SECONDS,
    ) -> None:
        self._prefix = checked_prefix(prefix)
        self._ttl_seconds = ttl_seconds
        self._connection = AsyncConnection(client, base_url, api_key)
        self._locks: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Creates a session. Raises `AlreadyExistsError` if the user already has a session with this ID."""
        session_id = session_id.strip() if session_id else ""
        deltas = extract_json_safe_state_delta(state or {})
        namespace = self._sessions_of(app_name)
        entry = await namespace.get(_key(user_id, session_id)) if session_id else None
        if entry and await stored(self._thread_of(entry)):
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")

        session_id = session_id or str(uuid.uuid4())
        thread = self._thread(f"thrd_{secrets.token_hex(24)}")
        now = platform_time.get_time()
        receipt = await thread.merge([ops.set(EVENTS, 0), ops.set(UPDATED, now), *_sets(deltas["session"])])
        try:
            await namespace.put(
                _key(user_id, session_id),
                encode({"user": user_id, "session": session_id, "thread": thread.id}),
                content_type="application/json",
                if_absent=entry is None,
                if_match=tag_of(entry.etag) if entry else None,
                idempotency_key=thread.id,
            )
        except VersionMismatch as error:
            await thread.destroy()
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from error
        await self._share(app_name, user_id, deltas, digest(thread.id))
        shared = await self._shared(app_name, user_id)
        return _session(
            app_name,
            user_id,
            session_id,
            Stored(Revision(thread.id, 0, tag_of(receipt.etag)), now, deltas["session"]),
            shared,
        )

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Reads a session with all events, or only the newest events that `config` selects."""
        session_id = session_id.strip()
        entry = await self._sessions_of(app_name).get(_key(user_id, session_id))
        if entry is None:
            return None
        thread = self._thread_of(entry)
        found, shared = await asyncio.gather(stored(thread), self._shared(app_name, user_id))
        if found is None:
            return None
        read = await events.read(thread, found.revision.events, config)
        return _session(app_name, user_id, session_id, found, shared, read)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Lists the sessions of a user or of all users, without events. The most recently used session comes last."""
        namespace = self._sessions_of(app_name)
        prefix = "" if user_id is None else f"{digest(user_id)}/"
        entries = [entry async for entry in namespace.entries(prefix)]
        names = [decode(entry.body) for entry in entries]
        users = list(dict.fromkeys(name["user"] for name in names))
        app_state = await self._app_state(app_name)
        user_states = await asyncio.gather(*(self.get_user_state(app_name=app_name, user_id=user) for user in users))
        shared = {user: _scoped(app_state, state) for user, state in zip(users, user_states, strict=True)}

        async def listed(entry: Entry, name: Mapping[str, str]) -> Session | None:
            found = await stored(self._thread_of(entry))
            if found is None:
                await _delete(namespace, entry)  # expired
                return None
            return _session(app_name, name["user"], name["session"], found, shared[name["user"]])

        found = await asyncio.gather(*map(listed, entries, names))
        sessions = [session for session in found if session is not None]
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session if it exists. Keeps the state of its user and app."""
        namespace = self._sessions_of(app_name)
        entry = await namespace.get(_key(user_id, session_id.strip()))
        if entry is None:
            return
        await self._thread_of(entry).destroy()
        await _delete(namespace, entry)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Returns the state that all sessions of a user share. Its keys do not have the `user:` prefix."""
        return values(await self._user_thread(app_name, user_id).read())

    async def append_event(self, session: Session, event: Event) -> Event:
        """Appends an event and its state change to `session` and, in one write, to the stored session.

        If the call fails, you can repeat it. A repeated call never appends the event twice, and completes the changes
        to the state of the app and the user.

        Raises `StaleSessionError` if the stored session has changed since `session` was read. Raises
        `SessionNotFoundError` if the session was deleted or has expired. Raises `AlreadyExistsError` if the session has
        a different event with this ID.
        """
        if event.partial:
            return event
        async with self._lock(session):
            self._apply_temp_state(session, event)
            event = self._trim_temp_delta_state(event)
            deltas = extract_json_safe_state_delta(event.actions.state_delta)
            seen = Revision.of(session) or await self._revision(session)
            thread = self._thread(seen.thread)
            number, key = seen.events + 1, digest(thread.id, event.id)
            item = {"number": number, "event": events.dumped(event)}
            operations = [
                ops.append(item, events.item_id(event)),
                ops.set(EVENTS, number),
                ops.set(UPDATED, event.timestamp),
                *_sets(deltas["session"]),
            ]
            try:
                receipt = await thread.merge(operations, if_match=seen.etag, idempotency_key=key)
            except VersionMismatch as error:
                if error.current_version == 0:
                    raise _not_found(session) from error
                raise _stale() from error
            except Destroyed as error:
                raise _not_found(session) from error
            except IdempotencyKeyReused as error:
                if not await events.has(thread, event):
                    raise AlreadyExistsError(f"Event {event.id} already exists.") from error
                await self._share(session.app_name, session.user_id, deltas, key)  # may be missing after a failed call
                return event
            await self._share(session.app_name, session.user_id, deltas, key)
            Revision(thread.id, number, tag_of(receipt.etag)).note_in(session)
            session.last_update_time = event.timestamp
            return await super().append_event(session, event)

    def _lock(self, session: Session) -> asyncio.Lock:
        """Returns a lock for appends to a session, because each append needs the revision that the previous one set."""
        return self._locks.setdefault((id(asyncio.get_running_loop()), id(session)), asyncio.Lock())

    async def _revision(self, session: Session) -> Revision:
        entry = await self._sessions_of(session.app_name).get(_key(session.user_id, session.id))
        found = await stored(self._thread_of(entry)) if entry else None
        if found is None:
            raise _not_found(session)
        if found.last_update_time > session.last_update_time:
            raise _stale()
        return found.revision

    async def _shared(self, app: str, user: str) -> dict[str, Any]:
        return _scoped(*await asyncio.gather(self._app_state(app), self.get_user_state(app_name=app, user_id=user)))

    async def _share(self, app: str, user: str, deltas: Mapping[str, Mapping[str, Any]], key: str) -> None:
        """Changes the state of the app and the user. A repeated call with the same `key` has no effect."""
        for thread, delta in ((self._app_thread(app), deltas["app"]), (self._user_thread(app, user), deltas["user"])):
            if delta:
                await thread.merge(_sets(delta), idempotency_key=key)

    async def _app_state(self, app: str) -> dict[str, Any]:
        return values(await self._app_thread(app).read())

    def _app_thread(self, app: str) -> AsyncThread:
        return self._thread(thread_id(self._prefix, "app", app))

    def _user_thread(self, app: str, user: str) -> AsyncThread:
        return self._thread(thread_id(self._prefix, "user", app, user))

    def _thread_of(self, entry: Entry) -> AsyncThread:
        return self._thread(decode(entry.body)["thread"])

    def _thread(self, id: str) -> AsyncThread:
        return self._connection.client.thread(id, ttl_seconds=self._ttl_seconds)

    def _sessions_of(self, app: str) -> AsyncNamespace:
        return self._connection.client.kv(namespace_name(self._prefix, app))


def _key(user: str, session: str) -> str:
    return f"{digest(user)}/{digest(session)}"


def _sets(delta: Mapping[str, Any]) -> Iterable[ops.Operation]:
    return (ops.set(VALUE + key, value) for key, value in delta.items())


def _scoped(app_state: Mapping[str, Any], user_state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{State.APP_PREFIX + key: value for key, value in app_state.items()},
        **{State.USER_PREFIX + key: value for key, value in user_state.items()},
    }


def _session(
    app: str, user: str, id: str, found: Stored, shared: Mapping[str, Any], events: Iterable[Event] = ()
) -> Session:
    session = Session(
        id=id,
        app_name=app,
        user_id=user,
        state={**found.state, **shared},
        events=list(events),
        last_update_time=found.last_update_time,
    )
    found.revision.note_in(session)
    return session


async def _delete(namespace: AsyncNamespace, entry: Entry) -> None:
    """Deletes the entry of an ended session, unless the entry already refers to a new session."""
    try:
        await namespace.delete(entry.key, if_match=tag_of(entry.etag), idempotency_key=secrets.token_hex(16))
    except VersionMismatch:
        pass


def _not_found(session: Session) -> SessionNotFoundError:
    return SessionNotFoundError(f"Session {session.id} not found.")


def _stale() -> StaleSessionError:
    return StaleSessionError("The session has been modified in storage since it was loaded. Load it again.")
