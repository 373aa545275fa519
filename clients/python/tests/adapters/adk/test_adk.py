"""Tests behaviour of ThreadkeepSessionService that ADK's in-memory service lacks."""

from __future__ import annotations

import asyncio
import datetime
import threading
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from adk_writer import EVENTS
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.genai import types
from scripted import Scripted, user
from support.adapters import error_without, output_of_example, start
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep, Threadkeep, TooLarge, TransportError, Unavailable
from threadkeep._adapter import thread_id
from threadkeep.adk import ThreadkeepSessionService
from threadkeep.adk.revision import Revision

WRITER = Path(__file__).parent / "adk_writer.py"


@pytest.fixture
async def service(server: Server) -> AsyncIterator[ThreadkeepSessionService]:
    async with ThreadkeepSessionService(base_url=server.url, api_key=API_KEY) as service:
        yield service


@pytest.fixture
async def faulty(proxy: Proxy) -> AsyncIterator[ThreadkeepSessionService]:
    async with ThreadkeepSessionService(base_url=proxy.url, api_key=API_KEY) as service:
        yield service


@pytest.fixture
def app() -> str:
    return f"app_{uuid.uuid4().hex}"


def event(**delta: Any) -> Event:
    return Event(author="agent", invocation_id="i", actions=EventActions(state_delta=delta))


async def stored(service: ThreadkeepSessionService, session: Session) -> Session:
    found = await service.get_session(app_name=session.app_name, user_id=session.user_id, session_id=session.id)
    assert found is not None
    return found


async def test_an_append_to_a_stale_session_changes_nothing(service: ThreadkeepSessionService, app: str) -> None:
    first = await service.create_session(app_name=app, user_id="ada")
    second = await stored(service, first)
    await service.append_event(first, event(a=1))
    with pytest.raises(StaleSessionError, match="modified in storage"):
        await service.append_event(second, event(**{"a": 2, "user:b": 3}))
    assert second.events == []
    assert await stored(service, first) == first
    assert first.state == {"a": 1}

    again = await stored(service, second)
    await service.append_event(again, event(a=2))
    assert again.state == {"a": 2}


@pytest.mark.parametrize("marker", [None, "2030-01-02T00:00:00.000000", "2030-01-02 00:00:00 UTC", ""])
async def test_a_session_of_another_service_can_append_while_it_is_current(
    service: ThreadkeepSessionService, app: str, marker: str | None
) -> None:
    created = await service.create_session(app_name=app, user_id="ada")
    made = Session.model_validate_json(created.model_dump_json())
    made._storage_update_marker = marker
    await service.append_event(made, event(a=1))
    assert await stored(service, created) == made

    older = Session.model_validate_json(created.model_dump_json())
    with pytest.raises(StaleSessionError):
        await service.append_event(older, event(a=2))


async def test_a_copied_session_can_append(service: ThreadkeepSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    for copy in (session.model_copy(deep=True), session.model_copy()):
        copy = await stored(service, copy)
        await service.append_event(copy.model_copy(deep=True), event())
    assert len((await stored(service, session)).events) == 2


async def test_event_ids_are_unique(service: ThreadkeepSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    first = await service.append_event(session, event(a=1))
    other = event(a=2)
    other.id = first.id
    with pytest.raises(AlreadyExistsError):
        await service.append_event(session, other)
    assert await stored(service, session) == session
    for name in ("é 👋 \n", "x" * 10_000):
        named = event()
        named.id = name
        await service.append_event(session, named)
    assert await stored(service, session) == session


async def test_an_event_that_is_too_large_changes_nothing(service: ThreadkeepSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada", state={"a": 1})
    large = event(a=2)
    large.content = types.Content(role="model", parts=[types.Part(text="x" * 2_100_000)])
    with pytest.raises(TooLarge):
        await service.append_event(session, large)
    assert session.state == {"a": 1}
    assert await stored(service, session) == session


async def test_a_session_of_many_large_events_is_read_completely(service: ThreadkeepSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    for n in range(6):
        content = types.Content(role="model", parts=[types.Part(text=str(n) * 1_000_000)])
        await service.append_event(session, Event(author="a", invocation_id="i", content=content))
    assert await stored(service, session) == session


async def test_a_read_shows_events_and_state_of_one_moment(
    service: ThreadkeepSessionService, faulty: ThreadkeepSessionService, proxy: Proxy, app: str
) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    await service.append_event(session, event(n=1))
    appended: list[Event] = []

    def append_before_the_history_is_read(request: bytes) -> None:
        if b"/history?" in request and not appended:
            appended.append(asyncio.run(service.append_event(session, event(n=2))))

    proxy.fault = append_before_the_history_is_read
    found = await stored(faulty, session)
    assert appended
    assert (found.state, len(found.events)) == ({"n": 1}, 1)
    with pytest.raises(StaleSessionError):
        await faulty.append_event(found, event(n=3))


async def test_values_that_are_not_json_are_stored_as_json(service: ThreadkeepSessionService, app: str) -> None:
    time = datetime.datetime(2030, 1, 2, tzinfo=datetime.timezone.utc)
    session = await service.create_session(app_name=app, user_id="ada", state={"time": time})
    assert session.state == {"time": "2030-01-02T00:00:00Z"}
    await service.append_event(session, event(other=time, **{"user:set": {1}}))
    found = await stored(service, session)
    assert found.state == {"time": "2030-01-02T00:00:00Z", "other": "2030-01-02T00:00:00Z", "user:set": [1]}
    before = await stored(service, session)
    with pytest.raises(ValueError):
        await service.append_event(session, event(nan=float("nan")))
    assert await stored(service, session) == before


@pytest.mark.parametrize(("settings", "ttl_seconds"), [({}, 2_592_000), ({"ttl_seconds": 7_200}, 7_200)])
async def test_sessions_users_and_apps_have_the_configured_ttl(
    server: Server, app: str, settings: dict[str, int], ttl_seconds: int
) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        service = ThreadkeepSessionService(client=client, **settings)
        session = await service.create_session(app_name=app, user_id="ada", state={"user:a": 1, "app:a": 1})
        revision = Revision.of(session)
        assert revision
        for id in (revision.thread, thread_id("adk", "app", app), thread_id("adk", "user", app, "ada")):
            assert (await client.thread(id).info()).ttl_seconds == ttl_seconds


async def test_an_expired_session_can_be_created_again(
    service: ThreadkeepSessionService, server: Server, app: str
) -> None:
    session = await service.create_session(app_name=app, user_id="ada", session_id="s", state={"a": 1})
    revision = Revision.of(session)
    assert revision
    with Threadkeep(server.url, api_key=API_KEY) as tk:
        tk.thread(revision.thread).destroy()  # simulates an expired session

    assert await service.get_session(app_name=app, user_id="ada", session_id="s") is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event())
    made = await asyncio.gather(
        *(service.create_session(app_name=app, user_id="ada", session_id="s", state={"n": n}) for n in range(3)),
        return_exceptions=True,
    )
    [winner] = [found for found in made if isinstance(found, Session)]
    assert await stored(service, winner) == winner

    revision = Revision.of(winner)
    assert revision
    with Threadkeep(server.url, api_key=API_KEY) as tk:
        tk.thread(revision.thread).destroy()
        namespace = service._sessions_of(app)
        assert [entry async for entry in namespace.keys()]
        assert (await service.list_sessions(app_name=app)).sessions == []
        assert not [entry async for entry in namespace.keys()]


async def test_writes_with_lost_responses_are_performed_once(
    faulty: ThreadkeepSessionService, proxy: Proxy, app: str
) -> None:
    cut: set[bytes] = set()

    def cut_each_request_once(request: bytes) -> str | None:
        if request in cut:
            return None
        cut.add(request)
        return "cut"

    proxy.fault = cut_each_request_once
    session = await faulty.create_session(app_name=app, user_id="ada", session_id="s", state={"user:a": 1, "b": 2})
    for n in range(3):
        await faulty.append_event(session, event(**{"user:a": n, "b": n}))
    assert len((await stored(faulty, session)).events) == 3
    assert await stored(faulty, session) == session
    await faulty.delete_session(app_name=app, user_id="ada", session_id="s")
    assert (await faulty.list_sessions(app_name=app, user_id="ada")).sessions == []


@pytest.mark.parametrize("write", [1, 2, 3])
async def test_a_failed_append_can_be_retried(proxy: Proxy, app: str, write: int) -> None:
    """An append writes to the session, the app and the user. The response to write number `write` is lost."""
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, max_retries=0) as client:
        service = ThreadkeepSessionService(client=client)
        session = await service.create_session(app_name=app, user_id="ada")
        count = 0

        def cut_one(request: bytes) -> str | None:
            nonlocal count
            count += 1
            return "cut" if count == write else None

        proxy.fault = cut_one
        sent = event(**{"user:a": 1, "app:b": 2, "temp:c": 3, "d": 4})
        with pytest.raises(TransportError):
            await service.append_event(session, sent)
        assert session.events == []
        await service.append_event(session, sent)
        assert session.events == [sent]
        assert session.state == {"user:a": 1, "app:b": 2, "temp:c": 3, "d": 4}
        del session.state["temp:c"]
        assert await stored(service, session) == session


@pytest.mark.parametrize("write", [2, 3])
async def test_a_partial_append_is_completed_after_a_reload(proxy: Proxy, app: str, write: int) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, max_retries=0) as client:
        service = ThreadkeepSessionService(client=client)
        session = await service.create_session(app_name=app, user_id="ada")
        before = len(proxy.requests)
        unavailable = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
        proxy.fault = lambda request: unavailable if len(proxy.requests) - before >= write else None
        sent = event(**{"user:a": 1, "app:b": 2, "d": 4})
        with pytest.raises(Unavailable):
            await service.append_event(session, sent)

        proxy.fault = lambda request: None
        for _ in range(2):
            assert await service.append_event(await stored(service, session), sent) == sent
        found = await stored(service, session)
        assert found.events == [sent]
        assert found.state == {"user:a": 1, "app:b": 2, "d": 4}


async def test_two_processes_neither_lose_nor_duplicate_writes(
    service: ThreadkeepSessionService, proxy: Proxy, app: str
) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 11 == 0 else None

    proxy.fault = cut_some
    processes = [start(WRITER, "append", app, session.id, name, url=proxy.url) for name in "ab"]
    for process in processes:
        process.communicate(timeout=1_200)
    assert [process.returncode for process in processes] == [0, 0]

    found = await stored(service, session)
    written = {f"{name}{n}": n for name in "ab" for n in range(EVENTS)}
    for name in "ab":
        assert [e.invocation_id for e in found.events if e.author == name] == [str(n) for n in range(EVENTS)]
    assert {key: value for key, value in found.state.items() if ":" not in key} == written
    assert await service.get_user_state(app_name=app, user_id="ada") == written
    assert {key[4:]: value for key, value in found.state.items() if key.startswith("app:")} == written


async def test_a_session_continues_after_its_process_is_killed(
    service: ThreadkeepSessionService, server: Server, app: str
) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    process = start(WRITER, "hang", app, session.id, "", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()

    before = await stored(service, session)
    assert before.state == {"n": 1}
    assert [bool(found.get_function_calls()) for found in before.events] == [False, True]
    model = Scripted(answers=[types.Part(text="Sorry.")])
    runner = Runner(app_name=app, agent=LlmAgent(name="agent", model=model), session_service=service)
    async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=user("Go on.")):
        pass
    after = await stored(service, session)
    assert after.events[:2] == before.events
    assert [found.author for found in after.events[2:]] == ["user", "agent"]


def test_a_service_serves_any_event_loop(server: Server, app: str) -> None:
    service = ThreadkeepSessionService(base_url=server.url, api_key=API_KEY)

    async def use(name: str) -> None:
        session = await service.create_session(app_name=app, user_id="ada", session_id=name)
        await asyncio.gather(*(service.append_event(session, event(**{f"k{n}": n})) for n in range(10)))
        assert await stored(service, session) == session

    asyncio.run(use("a"))
    threads = [threading.Thread(target=lambda name=name: asyncio.run(use(name))) for name in "bcd"]
    run_all(threads)
    listed = asyncio.run(service.list_sessions(app_name=app, user_id="ada")).sessions
    assert sorted((session.id, len(session.state)) for session in listed) == [(name, 10) for name in "abcd"]


async def test_prefixes_keep_sessions_apart(server: Server, app: str) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        first, second = (ThreadkeepSessionService(client=client, prefix=prefix) for prefix in "ab")
        await first.create_session(app_name=app, user_id="ada", session_id="s", state={"user:a": 1, "app:a": 1})
        assert (await second.create_session(app_name=app, user_id="ada", session_id="s")).state == {}
        with pytest.raises(ValueError):
            ThreadkeepSessionService(client=client, prefix="x" * 21)


async def test_closing_leaves_the_callers_client_open(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        service = ThreadkeepSessionService(client=client)
        await service.close()
        await service.close()
        assert (await client.api_key()).name == "ops"


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("adk.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "4 events, and the state {'answer': 'I read 3 messages.'}",
    ]


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[adk]"' in error_without("google.adk.sessions", "threadkeep.adk")
