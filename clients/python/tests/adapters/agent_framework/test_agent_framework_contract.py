"""Tests behaviour that the framework's history provider and session store share with ours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    FileHistoryProvider,
    FileSessionStore,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    SessionStore,
    tool,
)
from scripted import Scripted, call
from support.adapters import NAMES, VALUES, unique
from support.server import API_KEY, Server

from threadkeep.agent_framework import ThreadkeepHistoryProvider, ThreadkeepSessionStore

pytestmark = pytest.mark.filterwarnings("ignore")  # the framework warns that its file classes are experimental


class History:
    def __init__(self, provider: HistoryProvider) -> None:
        self.provider = provider
        self.session = AgentSession(session_id=unique())
        self.state: dict[str, Any] = {}

    async def save(self, *messages: Message) -> None:
        await self.provider.save_messages(self.session.session_id, messages, state=self.state)

    async def read(self) -> list[Message]:
        return await self.provider.get_messages(self.session.session_id, state=self.state)


@pytest.fixture(params=["in memory", "file", "threadkeep"])
async def history(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> AsyncIterator[History]:
    if request.param == "in memory":
        yield History(InMemoryHistoryProvider(skip_excluded=True))
    elif request.param == "file":
        yield History(FileHistoryProvider(tmp_path, skip_excluded=True))
    else:
        provider = ThreadkeepHistoryProvider(base_url=server.url, api_key=API_KEY, skip_excluded=True)
        yield History(provider)
        await provider.close()


@pytest.fixture(params=["in memory", "file", "threadkeep"])
async def store(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> AsyncIterator[SessionStore]:
    if request.param == "in memory":
        yield SessionStore()
    elif request.param == "file":
        yield FileSessionStore(tmp_path)
    else:
        store = ThreadkeepSessionStore(base_url=server.url, api_key=API_KEY)
        yield store
        await store.close()


def user(text: str, id: str | None = None) -> Message:
    return Message("user", [text], message_id=id)


def assistant(text: str, id: str | None = None) -> Message:
    return Message("assistant", [text], message_id=id)


def dicts(messages: list[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_a_new_session_has_no_messages(history: History) -> None:
    assert await history.read() == []
    await history.save()
    assert await history.read() == []


@pytest.mark.parametrize("ids", [True, False])
async def test_messages_come_back_equal(history: History, ids: bool) -> None:
    messages = [
        Message("system", ["é 👋 \u2028 \0"]),
        Message("user", ["See", Content.from_data(b"\xff\0" * 100, "image/png")], author_name="ada"),
        Message(
            "assistant",
            [Content.from_function_call(call_id="c", name="f", arguments={"values": [1, 2.5, None, {"a": True}]})],
            additional_properties={"nested": {"list": [[]]}},
        ),
        Message("tool", [Content.from_function_result(call_id="c", result="done")]),
        *(Message("user", [str(n)], additional_properties={"value": value}) for n, value in enumerate(VALUES[:3])),
        *(Message("user", [str(n)], additional_properties={"value": value}) for n, value in enumerate(VALUES[6:])),
        Message("user", []),
    ]
    for number, message in enumerate(messages):
        message.message_id = f"m{number}" if ids else None
    await history.save(*messages)
    assert dicts(await history.read()) == dicts(messages)


async def test_messages_are_appended(history: History) -> None:
    await history.save(user("1", "a"), assistant("2", "b"))
    await history.save(user("3"), assistant("4"))
    await history.save(user("5"), assistant("6", "c"))
    assert texts(await history.read()) == list("123456")


async def test_equal_questions_are_kept_apart(history: History) -> None:
    for n in range(3):
        await history.save(user("Hello"))
        await history.save(assistant("Hi", str(n)))
    assert texts(await history.read()) == ["Hello", "Hi"] * 3


@pytest.mark.parametrize("ids", ["all", "none", "some"])
async def test_saving_a_transcript_again_adds_only_new_messages(history: History, ids: str) -> None:
    named = {"all": range(8), "none": [], "some": [1, 3, 5]}[ids]
    messages = [
        (assistant if n % 2 else user)(str(n), f"m{n}" if n in named else None)
        for n in range(8)
    ]  # fmt: skip
    for count in (2, 2, 4, 8, 8):
        await history.save(*messages[:count])
        assert texts(await history.read()) == [str(n) for n in range(count)]


async def test_a_changed_message_is_recognized_by_its_id(history: History) -> None:
    await history.save(user("1", "a"), assistant("2", "b"))
    await history.save(user("1", "a"), assistant("changed", "b"), user("3", "c"))
    assert texts(await history.read()) == ["1", "2", "3"]


async def test_messages_that_share_an_id_are_all_kept(history: History) -> None:
    await history.save(assistant("1", "a"), assistant("2", "a"))
    await history.save(user("3"), assistant("4", "a"))
    await history.save(assistant("5", "b"), assistant("6", "a"))
    assert texts(await history.read()) == list("123456")


async def test_excluded_messages_are_not_read(history: History) -> None:
    excluded = Message("user", ["1"], additional_properties={"_excluded": True})
    await history.save(excluded, assistant("2"))
    assert texts(await history.read()) == ["2"]


async def test_many_messages_are_saved_at_once(history: History) -> None:
    await history.save(*(user(str(n), f"m{n}") for n in range(2_500)))
    assert texts(await history.read()) == [str(n) for n in range(2_500)]


async def test_concurrent_saves_are_all_kept(history: History) -> None:
    await asyncio.gather(*(history.save(user(f"{n}"), assistant(f"{n}!", f"m{n}")) for n in range(20)))
    found = texts(await history.read())
    assert sorted(found[::2]) == sorted(str(n) for n in range(20))
    assert found[1::2] == [f"{text}!" for text in found[::2]]


async def test_random_saves_have_the_result_of_the_in_memory_provider(history: History) -> None:
    """Tests saves in which at least one message has no ID."""
    source = random.Random(7)
    pool = [
        user("a"),
        user("b"),
        assistant("a"),
        assistant("c"),
        assistant("d", "1"),
        assistant("e", "2"),
        user("f", "3"),
    ]
    expected = History(InMemoryHistoryProvider())
    for _ in range(40):
        batch = [*source.choices(pool, k=source.randrange(3)), source.choice(pool[:4])]
        if source.random() < 0.4:
            batch = (await expected.read())[-source.randrange(1, 9) :] + batch
        await history.save(*batch)
        await expected.save(*batch)
        assert dicts(await history.read()) == dicts(await expected.read())


async def test_an_agent_continues_a_conversation(history: History) -> None:
    @tool(approval_mode="never_require")
    def look() -> str:
        """Looks."""
        return "It is blue."

    client = Scripted(call("look"), "Blue.", "As I said: blue.")
    agent = Agent(client, tools=[look], context_providers=[history.provider])
    for question in ("What color?", "Again?"):
        await agent.run(question, session=history.session)
    state = history.session.state.get(history.provider.source_id, {})
    stored = await history.provider.get_messages(history.session.session_id, state=state)
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    sent = [(message.role, [content.to_dict() for content in message.contents]) for message in client.requests[-1]]
    assert sent == [(message.role, [content.to_dict() for content in message.contents]) for message in stored[:-1]]
    assert texts(stored)[-1] == "As I said: blue."


async def test_a_session_is_read_as_it_was_set(store: SessionStore) -> None:
    id = unique()
    assert await store.get(id) is None
    state = {f"key {n}": value for n, value in enumerate(VALUES) if value not in ("\ud83d", 2**70)}
    session = AgentSession(session_id="s", service_session_id="remote")
    session.state = {"values": state, "in_memory": {"messages": [user("1"), assistant("2", "b")]}}
    await store.set(id, session)
    found = await store.get(id)
    assert found is not None
    assert found.to_dict() == session.to_dict()
    assert isinstance(found.state["in_memory"]["messages"][0], Message)


async def test_a_session_that_is_set_again_replaces_the_earlier_one(store: SessionStore) -> None:
    id = unique()
    for n in range(3):
        session = AgentSession(session_id="s")
        session.state = {f"n{n}": n}
        await store.set(id, session)
        found = await store.get(id)
        assert found is not None
        assert found.state == {f"n{n}": n}


async def test_a_read_returns_a_copy(store: SessionStore) -> None:
    id, session = unique(), AgentSession(session_id="s")
    session.state = {"list": [1]}
    await store.set(id, session)
    session.state["list"].append(2)
    for _ in range(2):
        found = await store.get(id)
        assert found is not None
        assert found.state == {"list": [1]}
        found.state["list"].append(3)


async def test_a_deleted_session_is_gone(store: SessionStore) -> None:
    id = unique()
    await store.delete(id)
    for _ in range(2):
        await store.set(id, AgentSession(session_id="s"))
        await store.delete(id)
        assert await store.get(id) is None


async def test_an_empty_id_is_rejected(store: SessionStore) -> None:
    with pytest.raises(ValueError):
        await store.get("")
    with pytest.raises(ValueError):
        await store.set("", AgentSession())
    with pytest.raises(ValueError):
        await store.delete("")


async def test_any_text_names_a_session(store: SessionStore) -> None:
    names = [name for name in NAMES if name]
    if isinstance(store, FileSessionStore):
        names = [name for name in names if len(name) <= 128 and "\ud83d" not in name]
    for name in names:
        await store.set(name, AgentSession(session_id=name[:9]))
    for name in names:
        found = await store.get(name)
        assert found is not None
        assert found.session_id == name[:9]
