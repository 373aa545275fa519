"""Tests behaviour that our history provider and session store have, but the framework's own classes do not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message
from agent_framework_writer import SAVES
from scripted import Scripted
from support.adapters import NAMES, error_without, output_of_example, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep, TooLarge
from threadkeep._adapter import digest, thread_id
from threadkeep.agent_framework import ThreadkeepHistoryProvider, ThreadkeepSessionStore

WRITER = Path(__file__).parent / "agent_framework_writer.py"


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncThreadkeep]:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        yield client


@pytest.fixture
async def faulty(proxy: Proxy) -> AsyncIterator[AsyncThreadkeep]:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        yield client


@pytest.fixture
def session() -> str:
    return unique("session")


def user(text: str, id: str | None = None) -> Message:
    return Message("user", [text], message_id=id)


async def texts(provider: ThreadkeepHistoryProvider, session: str) -> list[str]:
    return [message.text for message in await provider.get_messages(session)]


async def test_messages_with_ids_are_saved_by_one_request(faulty: AsyncThreadkeep, proxy: Proxy, session: str) -> None:
    provider = ThreadkeepHistoryProvider(client=faulty)
    messages = [user(str(n), f"m{n}") for n in range(10)]
    await provider.save_messages(session, messages[:5])
    await provider.save_messages(session, messages)
    assert len(proxy.requests) == 2
    await provider.save_messages(session, messages[3:6])
    assert await texts(provider, session) == [str(n) for n in range(10)]


async def test_a_save_after_a_concurrent_save_adds_only_new_messages(
    client: AsyncThreadkeep, faulty: AsyncThreadkeep, proxy: Proxy, session: str
) -> None:
    provider, overtaken = ThreadkeepHistoryProvider(client=client), ThreadkeepHistoryProvider(client=faulty)
    transcript = [user(text) for text in "abc"]
    pending = [transcript]

    def save_the_same_before(request: bytes) -> None:
        if request.startswith(b"PATCH") and pending:
            asyncio.run(provider.save_messages(session, pending.pop()))

    proxy.fault = save_the_same_before
    await overtaken.save_messages(session, [*transcript, user("d")])
    assert not pending
    assert await texts(provider, session) == list("abcd")


async def test_a_save_that_is_too_large_adds_nothing(client: AsyncThreadkeep, session: str) -> None:
    provider = ThreadkeepHistoryProvider(client=client)
    for ids in ("a", "b"), (None, None):
        with pytest.raises(TooLarge):
            await provider.save_messages(session, [user("x" * 1_100_000, id) for id in ids])
    assert await texts(provider, session) == []


@pytest.mark.parametrize("before", [1, 1_000])
async def test_a_message_that_is_not_json_adds_nothing(client: AsyncThreadkeep, session: str, before: int) -> None:
    provider = ThreadkeepHistoryProvider(client=client)
    for has_ids in True, False:
        messages = [user("a", str(n) if has_ids else None) for n in range(before + 1)]
        messages[-1].additional_properties["value"] = float("nan")
        with pytest.raises(ValueError):
            await provider.save_messages(session, messages)
    assert await texts(provider, session) == []


async def test_sources_sessions_and_prefixes_keep_messages_apart(client: AsyncThreadkeep) -> None:
    names = [name for name in NAMES if name]
    providers = [ThreadkeepHistoryProvider(unique() + name, client=client) for name in ("a", "b")]
    providers += [ThreadkeepHistoryProvider(providers[0].source_id, client=client, prefix="other")]
    for number, provider in enumerate(providers):
        for name in names:
            await provider.save_messages(name, [user(f"{number} {name}", "id")])
    for number, provider in enumerate(providers):
        for name in names:
            assert await texts(provider, name) == [f"{number} {name}"]
    with pytest.raises(ValueError):
        ThreadkeepHistoryProvider(client=client, prefix="é")


async def test_a_history_belongs_to_a_session(client: AsyncThreadkeep) -> None:
    provider = ThreadkeepHistoryProvider(client=client)
    for session in (None, ""):
        with pytest.raises(ValueError):
            await provider.get_messages(session)
        with pytest.raises(ValueError):
            await provider.save_messages(session, [user("a")])


async def test_a_cleared_session_can_be_used_immediately(client: AsyncThreadkeep, session: str) -> None:
    provider = ThreadkeepHistoryProvider(client=client)
    for _ in range(3):
        await provider.save_messages(session, [user("a", "1"), user("b")])
        assert await texts(provider, session) == ["a", "b"]
        await provider.clear(session)
        assert await texts(provider, session) == []


@pytest.mark.parametrize(("settings", "ttl_seconds"), [({}, 2_592_000), ({"ttl_seconds": 7_200}, 7_200)])
async def test_a_history_has_the_configured_ttl(
    client: AsyncThreadkeep, session: str, settings: dict[str, Any], ttl_seconds: int
) -> None:
    provider = ThreadkeepHistoryProvider(client=client, **settings)
    for number, id in enumerate([None, "id"]):
        await provider.save_messages(f"{session}{number}", [user("a", id)])
        thread = client.thread(thread_id("agent-framework", provider.source_id, f"{session}{number}"))
        assert (await thread.info()).ttl_seconds == ttl_seconds


async def test_writes_with_lost_responses_are_performed_once(
    faulty: AsyncThreadkeep, proxy: Proxy, session: str
) -> None:
    cut: set[bytes] = set()

    def cut_each_request_once(request: bytes) -> str | None:
        if request in cut:
            return None
        cut.add(request)
        return "cut"

    proxy.fault = cut_each_request_once
    provider, store = ThreadkeepHistoryProvider(client=faulty), ThreadkeepSessionStore(client=faulty)
    await provider.save_messages(session, [user("a", "1"), user("b", "2")])
    await provider.save_messages(session, [user("c"), user("d")])
    assert await texts(provider, session) == list("abcd")
    await provider.clear(session)
    assert await texts(provider, session) == []
    await store.set(session, AgentSession(session_id="s"))
    assert await store.get(session) is not None
    await store.delete(session)
    assert await store.get(session) is None


async def test_two_processes_neither_lose_nor_duplicate_nor_mix_writes(
    client: AsyncThreadkeep, proxy: Proxy, session: str
) -> None:
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 11 == 0 else None

    proxy.fault = cut_some
    processes = [start(WRITER, "save", session, name, url=proxy.url) for name in "xy"]
    for process in processes:
        process.communicate(timeout=1_200)
    assert [process.returncode for process in processes] == [0, 0]
    found = await texts(ThreadkeepHistoryProvider(client=client), session)
    for name in "xy":
        expected = [f"{name} {n} {part}" for n in range(SAVES) for part in "ab"]
        assert [text for text in found if text.startswith(name)] == expected
    assert [text[:-1] for text in found[::2]] == [text[:-1] for text in found[1::2]]


async def test_a_session_continues_after_its_process_is_killed(
    client: AsyncThreadkeep, server: Server, session: str
) -> None:
    process = start(WRITER, "hang", session, "", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()

    provider, scripted = ThreadkeepHistoryProvider(client=client), Scripted("third answer")
    assert await texts(provider, session) == ["first", "first answer"]
    await Agent(scripted, context_providers=[provider]).run("third", session=AgentSession(session_id=session))
    assert [message.text for message in scripted.requests[0]] == ["first", "first answer", "third"]
    assert await texts(provider, session) == ["first", "first answer", "third", "third answer"]


async def test_a_provider_that_only_stores_is_not_read(client: AsyncThreadkeep, session: str) -> None:
    audit = ThreadkeepHistoryProvider("audit", client=client, load_messages=False, store_inputs=False)
    scripted = Scripted("1", "2")
    agent = Agent(scripted, context_providers=[ThreadkeepHistoryProvider(client=client), audit])
    for question in "ab":
        await agent.run(question, session=AgentSession(session_id=session))
    assert await texts(audit, session) == ["1", "2"]
    assert [message.text for message in scripted.requests[1]] == ["a", "1", "b"]


@pytest.mark.filterwarnings("ignore:AgentSession state value")
async def test_a_session_that_cannot_be_restored_is_rejected(client: AsyncThreadkeep, session: str) -> None:
    store = ThreadkeepSessionStore(client=client)
    for value, error in ((object(), TypeError), ({1}, TypeError), (b"a", TypeError), (float("nan"), ValueError)):
        stored = AgentSession(session_id="s")
        stored.state = {"value": value}
        with pytest.raises(error):
            await store.set(session, stored)

    class Own(AgentSession):
        pass

    with pytest.raises(TypeError):
        await store.set(session, Own(session_id="s"))
    assert await store.get(session) is None


async def test_snapshots_expire_only_with_a_ttl(client: AsyncThreadkeep, session: str) -> None:
    for settings, expires in (({}, False), ({"ttl_seconds": 3_600}, True)):
        store = ThreadkeepSessionStore(client=client, **settings)
        await store.set(session, AgentSession(session_id="s"))
        entry = await store._entries.get(digest(session))
        assert entry is not None
        assert (entry.expires_at is not None) is expires


def test_provider_and_store_serve_any_event_loop(server: Server, session: str) -> None:
    provider = ThreadkeepHistoryProvider(base_url=server.url, api_key=API_KEY)
    store = ThreadkeepSessionStore(base_url=server.url, api_key=API_KEY)

    async def use(name: str) -> None:
        await asyncio.gather(*(provider.save_messages(session, [user(f"{name}{n}")]) for n in range(10)))
        await store.set(session + name, AgentSession(session_id=name))

    asyncio.run(use("a"))
    threads = [threading.Thread(target=lambda name=name: asyncio.run(use(name))) for name in "bcd"]
    run_all(threads)
    expected = [f"{name}{n}" for name in "abcd" for n in range(10)]
    assert sorted(asyncio.run(texts(provider, session))) == expected
    for name in "abcd":
        found = asyncio.run(store.get(session + name))
        assert found is not None
        assert found.session_id == name


async def test_closing_leaves_the_callers_client_open(client: AsyncThreadkeep, server: Server) -> None:
    for kind in (ThreadkeepHistoryProvider, ThreadkeepSessionStore):
        shared = kind(client=client)
        await shared.close()
        own = kind(base_url=server.url, api_key=API_KEY)
        await own.close()
        await own.close()
    assert (await client.api_key()).name == "ops"


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("agent_framework_agent.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "4 messages are stored",
    ]


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[agent-framework]"' in error_without("agent_framework", "threadkeep.agent_framework")
