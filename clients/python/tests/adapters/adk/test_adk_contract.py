"""Tests behaviour that ADK's in-memory session service and ours share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import ToolContext
from google.adk.version import __version__ as version
from google.genai import types
from scripted import Scripted, call, user
from support.adapters import NAMES, VALUES, unique
from support.server import API_KEY, Server

from threadkeep.adk import ThreadkeepSessionService

# Before 2.11, the in-memory service kept whitespace in IDs, and its `append_event` did not detect a missing session.
SERVICES = ["in memory", "threadkeep"] if tuple(map(int, version.split("."))) >= (2, 11, 0) else ["threadkeep"]


@pytest.fixture(params=SERVICES)
async def service(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[BaseSessionService]:
    if request.param == "in memory":
        yield InMemorySessionService()
        return
    async with ThreadkeepSessionService(base_url=server.url, api_key=API_KEY) as service:
        yield service


@pytest.fixture
def app() -> str:
    return unique("app")


def event(timestamp: float | None = None, *, text: str = "Hello", **delta: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    event = Event(author="agent", invocation_id="i", content=content, actions=EventActions(state_delta=delta))
    if timestamp is not None:
        event.timestamp = timestamp
    return event


def scoped(**values: Any) -> dict[str, Any]:
    return {key.replace("_", ":", 1): value for key, value in values.items()}


async def stored(service: BaseSessionService, session: Session, **config: Any) -> Session:
    found = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=GetSessionConfig(**config) if config else None,
    )
    assert found is not None
    return found


async def test_a_session_is_read_as_it_was_created(service: BaseSessionService, app: str) -> None:
    created = await service.create_session(app_name=app, user_id="ada", session_id="s", state={"a": 1})
    assert (created.app_name, created.user_id, created.id) == (app, "ada", "s")
    assert created.state == {"a": 1}
    assert created.events == []
    assert created.last_update_time > 0
    assert await stored(service, created) == created


async def test_sessions_without_an_id_get_one(service: BaseSessionService, app: str) -> None:
    made = [await service.create_session(app_name=app, user_id="ada", session_id=id) for id in (None, None, "", " \n")]
    assert len({session.id for session in made}) == 4
    assert all(session.id.strip() for session in made)


async def test_white_space_around_the_id_of_a_session_is_ignored(service: BaseSessionService, app: str) -> None:
    created = await service.create_session(app_name=app, user_id="ada", session_id=" s\t")
    assert created.id == "s"
    assert await service.get_session(app_name=app, user_id="ada", session_id="\ns ") == created
    await service.delete_session(app_name=app, user_id="ada", session_id=" s")
    assert await service.get_session(app_name=app, user_id="ada", session_id="s") is None


async def test_a_session_is_created_once(service: BaseSessionService, app: str) -> None:
    first = await service.create_session(app_name=app, user_id="ada", session_id="s", state={"a": 1})
    with pytest.raises(AlreadyExistsError):
        await service.create_session(app_name=app, user_id="ada", session_id=" s", state=scoped(a=2, app_a=2, user_a=2))
    assert await stored(service, first) == first
    assert await service.get_user_state(app_name=app, user_id="ada") == {}


async def test_one_of_several_concurrent_creations_succeeds(service: BaseSessionService, app: str) -> None:
    made = await asyncio.gather(
        *(service.create_session(app_name=app, user_id="ada", session_id="s", state={"n": n}) for n in range(5)),
        return_exceptions=True,
    )
    [winner] = [session for session in made if isinstance(session, Session)]
    assert [type(error) for error in made if error is not winner] == [AlreadyExistsError] * 4
    assert await stored(service, winner) == winner


async def test_a_missing_session_is_none(service: BaseSessionService, app: str) -> None:
    await service.create_session(app_name=app, user_id="ada", session_id="s")
    for names in ((app, "ada", "t"), (app, "bob", "s"), (unique(), "ada", "s"), (app, "ada", "")):
        found = await service.get_session(app_name=names[0], user_id=names[1], session_id=names[2])
        assert found is None, names


async def test_states_of_apps_and_users_are_shared(service: BaseSessionService, app: str) -> None:
    state = scoped(app_a=1, user_u=2, temp_t=3, s=4)
    first = await service.create_session(app_name=app, user_id="ada", session_id="1", state=state)
    assert first.state == scoped(app_a=1, user_u=2, s=4)
    second = await service.create_session(app_name=app, user_id="ada", session_id="2")
    assert second.state == scoped(app_a=1, user_u=2)
    assert (await service.create_session(app_name=app, user_id="bob")).state == scoped(app_a=1)
    assert (await service.create_session(app_name=unique(), user_id="ada")).state == {}

    await service.append_event(second, event(**scoped(app_a=5, user_v=None, temp_t=6, s=7)))
    assert (await stored(service, first)).state == scoped(app_a=5, user_u=2, user_v=None, s=4)
    assert (await stored(service, second)).state == scoped(app_a=5, user_u=2, user_v=None, s=7)


async def test_the_state_of_a_user_is_read_without_a_session(service: BaseSessionService, app: str) -> None:
    assert await service.get_user_state(app_name=app, user_id="ada") == {}
    session = await service.create_session(app_name=app, user_id="ada", state=scoped(app_a=1, user_u={"v": 2}, s=3))
    await service.append_event(session, event(**scoped(user_w=[4])))
    assert await service.get_user_state(app_name=app, user_id="ada") == {"u": {"v": 2}, "w": [4]}
    assert await service.get_user_state(app_name=app, user_id="bob") == {}


async def test_a_loaded_session_equals_the_stored_one_after_each_event(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada", state={"n": 0})
    for n in range(1, 4):
        appended = event(n=n, **{f"k{n}": n})
        assert await service.append_event(session, appended) is appended
        assert session.state == {"n": n, **{f"k{m}": m for m in range(1, n + 1)}}
        assert session.events[-1] == appended
        assert await stored(service, session) == session


async def test_temporary_state_is_not_stored(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    appended = await service.append_event(session, event(**scoped(temp_t=1, s=2)))
    assert session.state == scoped(temp_t=1, s=2)
    assert appended.actions.state_delta == {"s": 2}
    found = await stored(service, session)
    assert found.state == {"s": 2}
    assert found.events == [appended]


async def test_partial_events_are_not_stored(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    partial = event(s=1)
    partial.partial = True
    assert await service.append_event(session, partial) is partial
    assert (session.events, session.state) == ([], {})
    assert await stored(service, session) == session


async def test_a_session_has_the_time_of_its_last_event(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    for timestamp in (1_900_000_000.123456, 5.25):
        await service.append_event(session, event(timestamp))
        assert session.last_update_time == timestamp
        assert await stored(service, session) == session


async def test_the_newest_events_are_read(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada", state={"a": 1})
    events = [await service.append_event(session, event(float(n), n=n)) for n in range(1, 6)]
    for count, expected in ((0, []), (1, events[4:]), (3, events[2:]), (5, events), (9, events)):
        found = await stored(service, session, num_recent_events=count)
        assert found.events == expected
        assert found.state == {"a": 1, "n": 5}
    for after, expected in ((0.0, events), (3.0, events[2:]), (3.5, events[3:]), (5.0, events[4:]), (6.0, [])):
        assert (await stored(service, session, after_timestamp=after)).events == expected
    assert (await stored(service, session, num_recent_events=2, after_timestamp=3.0)).events == events[3:]
    assert (await stored(service, session, num_recent_events=4, after_timestamp=4.0)).events == events[3:]


async def test_a_partially_loaded_session_can_append(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    first = [await service.append_event(session, event(n=n)) for n in range(3)]
    part = await stored(service, session, num_recent_events=1)
    last = await service.append_event(part, event(n=3))
    assert part.events == [first[2], last]
    assert (await stored(service, session)).events == [*first, last]


async def test_events_of_the_same_time_keep_their_order(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    for n in range(20):
        await service.append_event(session, event(7.0, text=str(n)))
    assert (await stored(service, session)).events == session.events


async def test_a_repeated_event_changes_nothing(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    first = event(s=1)
    await service.append_event(session, first)
    await service.append_event(session, event(s=2))
    assert await service.append_event(session, first.model_copy(deep=True)) == first
    assert len(session.events) == 2
    assert session.state == {"s": 2}
    assert await stored(service, session) == session
    part = await stored(service, session, num_recent_events=0)
    await service.append_event(part, first.model_copy(deep=True))
    assert await stored(service, session) == session


async def test_events_come_back_equal(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    parts = [
        types.Part(text="é 👋 \u2028 \0"),
        types.Part(function_call=types.FunctionCall(id="c", name="f", args={"values": [1, 2.5, None, {"a": True}]})),
        types.Part(function_response=types.FunctionResponse(id="c", name="f", response={"result": None})),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=bytes(range(256)) * 100)),
        types.Part(text="thinking", thought=True, thought_signature=b"\xff\x00"),
    ]
    sent = Event(
        author="user",
        invocation_id="i",
        branch="a.b",
        content=types.Content(role="user", parts=parts),
        long_running_tool_ids={"c", "d"},
        actions=EventActions(
            transfer_to_agent="b", escalate=True, artifact_delta={"f.txt": 3}, state_delta={"n": None}
        ),
        custom_metadata={"nested": {"none": None, "list": [[]]}},
        turn_complete=True,
        error_code="E",
        usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=7),
    )
    await service.append_event(session, sent)
    found = await stored(service, session)
    assert found.events == [sent]
    assert found == session


async def test_values_of_the_state_come_back_equal(service: BaseSessionService, app: str) -> None:
    state = {f"key {n}": value for n, value in enumerate(VALUES)} | {"": 1, ".": 2, "a/b": 3, "é 👋": 4, "x:y": 5}
    session = await service.create_session(app_name=app, user_id="ada", state=state)
    assert (await stored(service, session)).state == state
    await service.append_event(session, event(**{f"{key}!": value for key, value in state.items()}))
    found = await stored(service, session)
    assert found.state == state | {f"{key}!": value for key, value in state.items()}
    assert found == session


async def test_a_read_returns_a_copy(service: BaseSessionService, app: str) -> None:
    created = await service.create_session(app_name=app, user_id="ada", state={"list": [1]})
    await service.append_event(created, event())
    found = await stored(service, created)
    found.state["list"].append(2)
    found.state["other"] = 3
    found.events.clear()
    assert await stored(service, created) == created


async def test_sessions_are_listed_by_their_last_use(service: BaseSessionService, app: str) -> None:
    assert (await service.list_sessions(app_name=app, user_id="ada")).sessions == []
    for owner, id in (("ada", "1"), ("bob", "2"), ("ada", "3")):
        await service.create_session(
            app_name=app, user_id=owner, session_id=id, state=scoped(user_name=owner, n=int(id))
        )
    await service.create_session(app_name=unique(), user_id="ada", session_id="4")
    for owner, id, timestamp in (("ada", "1", 9e9), ("bob", "2", 8e9), ("ada", "3", 8e9)):
        session = await service.get_session(app_name=app, user_id=owner, session_id=id)
        assert session is not None
        await service.append_event(session, event(timestamp, **scoped(app_seen=True)))

    listed = (await service.list_sessions(app_name=app)).sessions
    assert [(session.user_id, session.id) for session in listed] == [("ada", "3"), ("bob", "2"), ("ada", "1")]
    assert [session.last_update_time for session in listed] == [8e9, 8e9, 9e9]
    assert all(session.events == [] for session in listed)
    assert [session.state for session in listed] == [
        scoped(app_seen=True, user_name=user, n=n) for user, n in (("ada", 3), ("bob", 2), ("ada", 1))
    ]
    assert (await service.list_sessions(app_name=app, user_id="ada")).sessions == [listed[0], listed[2]]
    assert (await service.list_sessions(app_name=app, user_id="eve")).sessions == []


async def test_a_deleted_session_is_gone(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada", session_id="s", state=scoped(user_u=1, s=2))
    other = await service.create_session(app_name=app, user_id="ada", session_id="t")
    await service.append_event(session, event())
    for _ in range(2):
        await service.delete_session(app_name=app, user_id="ada", session_id="s")
        assert await service.get_session(app_name=app, user_id="ada", session_id="s") is None
        assert [found.id for found in (await service.list_sessions(app_name=app)).sessions] == ["t"]
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event())
    assert await stored(service, other) == other
    assert await service.get_user_state(app_name=app, user_id="ada") == {"u": 1}


async def test_a_deleted_session_can_be_created_again_immediately(service: BaseSessionService, app: str) -> None:
    for n in range(3):
        session = await service.create_session(app_name=app, user_id="ada", session_id="s", state={f"n{n}": n})
        await service.append_event(session, event(float(n)))
        assert await stored(service, session) == session
        assert (len(session.events), session.state) == (1, {f"n{n}": n})
        await service.delete_session(app_name=app, user_id="ada", session_id="s")


async def test_an_append_to_a_session_that_was_never_created_fails(service: BaseSessionService, app: str) -> None:
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(app_name=app, user_id="ada", id="s"), event())
    assert await service.get_session(app_name=app, user_id="ada", session_id="s") is None


async def test_parallel_agents_can_append_to_one_loaded_session(service: BaseSessionService, app: str) -> None:
    session = await service.create_session(app_name=app, user_id="ada")
    await asyncio.gather(*(service.append_event(session, event(**{f"k{n}": n})) for n in range(20)))
    assert session.state == {f"k{n}": n for n in range(20)}
    assert len(session.events) == 20
    assert await stored(service, session) == session


async def test_any_text_is_a_valid_session_id(service: BaseSessionService, app: str) -> None:
    names = [name for name in NAMES if name == name.strip() and name]
    made = []
    for name in names:
        made.append(await service.create_session(app_name=app, user_id="ada", session_id=name, state={"in": name[:20]}))
    for name in NAMES:
        state = scoped(user_of=name[:20])
        made.append(await service.create_session(app_name=app, user_id=name, session_id="s", state=state))
    for session in made:
        assert await stored(service, session) == session
    assert len((await service.list_sessions(app_name=app)).sessions) == len(made)
    for name in NAMES:
        state = scoped(app_of=name[:20])
        await service.create_session(app_name=app + name, user_id="u", session_id="s", state=state)
    for name in NAMES:
        found = await service.get_session(app_name=app + name, user_id="u", session_id="s")
        assert found is not None
        assert found.state == scoped(app_of=name[:20])


async def test_a_runner_continues_a_conversation(service: BaseSessionService) -> None:
    async def remember(color: str, tool_context: ToolContext) -> str:
        """Remembers a color."""
        tool_context.state["user:color"] = color
        tool_context.state["temp:seen"] = color
        return "Noted."

    model = Scripted(answers=[call("remember", color="blue"), types.Part(text="I noted it."), types.Part(text="Blue.")])
    agent = LlmAgent(name="agent", model=model, tools=[remember], output_key="answer")
    app = f"app_{uuid.uuid4().hex}"
    runner = Runner(app_name=app, agent=agent, session_service=service)
    session = await service.create_session(app_name=app, user_id="ada")
    for text in ("I like blue.", "What do I like?"):
        async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=user(text)):
            pass

    found = await stored(service, session)
    assert found.state == {"user:color": "blue", "answer": "Blue."}
    assert [event.author for event in found.events] == ["user", "agent", "agent", "agent", "user", "agent"]
    texts = [content.parts[0].text for content in model.requests[-1].contents if content.parts]
    assert texts == ["I like blue.", None, None, "I noted it.", "What do I like?"]
