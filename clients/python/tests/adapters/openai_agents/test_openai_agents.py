from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, set_tracing_disabled
from agents.memory import Session, SessionSettings
from agents.run_internal.session_persistence import rewind_session_items
from agents_script import Script, message
from sessions_writer import ADDS, ITEMS
from support.adapters import NAMES, VALUES, error_without, output_of_example, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep, Threadkeep, TooLarge
from threadkeep._adapter import thread_id
from threadkeep.openai_agents import ThreadkeepSession

WRITER = Path(__file__).parent / "sessions_writer.py"
Open = Callable[..., ThreadkeepSession]


@pytest.fixture(scope="module", autouse=True)
def no_tracing() -> None:
    set_tracing_disabled(True)


@pytest.fixture
def open(server: Server) -> Open:
    def open(session_id: str | None = None, **settings: Any) -> ThreadkeepSession:
        settings = {"base_url": server.url, "api_key": API_KEY, **settings}
        return ThreadkeepSession(unique() if session_id is None else session_id, **settings)

    return open


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


async def test_a_session_implements_the_frameworks_protocol(open: Open) -> None:
    session = open("ada")
    assert isinstance(session, Session)
    assert session.session_id == "ada"


async def test_items_come_back_equal_and_duplicates_are_kept(open: Open) -> None:
    session = open()
    items = [user(value) for value in VALUES] * 2
    await session.add_items(items)
    found = await session.get_items()
    assert found == items
    assert [list(item["content"]) for item in found if isinstance(item.get("content"), dict)][1] == ["b", "a"]


async def test_a_limit_returns_the_newest_items_of_any_size(open: Open) -> None:
    session = open()
    items = [user(letter * 900_000) for letter in "abcd"]
    for item in items:
        await session.add_items([item])
    assert await session.get_items(3) == items[1:]
    assert await session.get_items() == items


async def test_many_items_are_added_and_read(open: Open) -> None:
    session = open()
    items = [user(n) for n in range(2_500)]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(1_500) == items[1_000:]
    assert await session.get_items(3_000) == items


async def test_a_limit_of_the_call_overrides_the_settings(open: Open) -> None:
    session = open(session_settings=SessionSettings(limit=2))
    items = [user(n) for n in range(4)]
    await session.add_items(items)
    assert await session.get_items() == items[2:]
    assert await session.get_items(3) == items[1:]
    assert await session.get_items(0) == []
    session.session_settings = SessionSettings(limit=0)
    assert await session.get_items() == []


async def test_a_write_that_is_too_large_adds_nothing(open: Open) -> None:
    session = open()
    with pytest.raises(TooLarge):
        await session.add_items([user("a" * 1_100_000)] * 2)
    assert await session.get_items() == []


async def test_an_item_that_is_not_json_adds_nothing(open: Open) -> None:
    session = open()
    with pytest.raises(TypeError):
        await session.add_items([user("a"), user(object())])
    with pytest.raises(ValueError):
        await session.add_items([user("a"), user(float("nan"))])
    assert await session.get_items() == []


async def test_a_cleared_session_can_be_used_immediately(open: Open) -> None:
    session = open()
    for n in range(3):
        await session.add_items([user(n), user(n)])
        assert len(await session.get_items()) == 2
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
    await session.clear_session()


async def test_any_text_is_a_valid_session_id(open: Open) -> None:
    prefix = unique()[:20]
    for name in NAMES:
        await open(name, prefix=prefix).add_items([user(name)])
    for name in NAMES:
        assert await open(name, prefix=prefix).get_items() == [user(name)]


async def test_prefixes_keep_sessions_apart(open: Open) -> None:
    name = unique()
    await open(name, prefix="a").add_items([user("a")])
    assert await open(name, prefix="b").get_items() == []
    for prefix in ("", "é", "a b", "x" * 21):
        with pytest.raises(ValueError):
            open(name, prefix=prefix)


async def test_a_session_has_the_configured_ttl(open: Open, server: Server) -> None:
    tk = Threadkeep(server.url, api_key=API_KEY)
    for ttl, settings in ((2_592_000, {}), (7_200, {"ttl_seconds": 7_200})):
        session = open(**settings)
        await session.add_items([user("a")])
        assert tk.thread(thread_id("openai-agents", session.session_id)).info().ttl_seconds == ttl
    tk.close()


async def test_a_write_with_a_lost_response_is_performed_once(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        session = ThreadkeepSession(unique(), client=client)
        proxy.fail_once("cut", "POST")
        await session.add_items([user("a"), user("b"), user("c")])
        assert await session.get_items() == [user("a"), user("b"), user("c")]
        proxy.fail_once("cut", "POST")
        assert await session.pop_item() == user("c")
        proxy.fail_once("cut", "GET")
        assert await session.get_items() == [user("a"), user("b")]
        proxy.fail_once("cut", "DELETE")
        await session.clear_session()
        assert await session.get_items() == []


async def test_two_processes_neither_lose_nor_duplicate_nor_mix_writes(open: Open, proxy: Proxy) -> None:
    session = open()
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 7 == 0 else None

    proxy.fault = cut_some
    processes = [start(WRITER, "add_and_pop", session.session_id, name, url=proxy.url) for name in "ab"]
    for process in processes:
        assert process.stdout and process.stdout.readline() == "added\n"
    contents = [item["content"] for item in await session.get_items()]
    for name in "ab":
        expected = [f"{name} {n} {part}" for n in range(ADDS) for part in range(ITEMS)]
        assert [content for content in contents if content.startswith(name)] == expected
    assert all(
        len({content.rpartition(" ")[0] for content in contents[start : start + ITEMS]}) == 1
        for start in range(0, len(contents), ITEMS)
    )

    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    popped = [process.communicate(timeout=1_200)[0].splitlines() for process in processes]
    assert sorted(popped[0] + popped[1]) == sorted(contents)
    assert await session.get_items() == []


async def test_concurrent_pops_get_different_items(open: Open) -> None:
    session = open()
    await session.add_items([user(n) for n in range(20)])
    popped = await asyncio.gather(*(session.pop_item() for _ in range(25)))
    assert sorted(item["content"] for item in popped if item) == list(range(20))
    assert popped.count(None) == 5


async def test_the_runner_removes_the_items_of_a_failed_call(open: Open) -> None:
    session = open()
    kept = [user(value) for value in VALUES]
    await session.add_items(kept)
    added: list[Any] = [
        user("é 👋"),
        {"type": "function_call_output", "call_id": "1", "output": "0.1 \ud83d"},
        user("é 👋"),
    ]
    await session.add_items(added)
    await rewind_session_items(session, added)
    assert await session.get_items() == kept


async def test_a_conversation_continues_after_a_failed_model_call(open: Open) -> None:
    session = open()
    model = Script(message("first answer"), RuntimeError("model"), message("third answer"))
    agent = Agent(name="agent", model=model)
    await Runner.run(agent, "first", session=session)
    with pytest.raises(RuntimeError, match="model"):
        await Runner.run(agent, "second", session=session)
    await Runner.run(agent, "third", session=session)
    contents = [item.get("content") for item in model.inputs[-1]]
    assert [content for content in contents if isinstance(content, str)] == ["first", "second", "third"]


async def test_a_session_continues_after_its_process_is_killed(open: Open, server: Server) -> None:
    session = open()
    process = start(WRITER, "hang", session.session_id, "", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()

    before = await session.get_items()
    assert [item.get("content") for item in before if item.get("role") == "user"] == ["first", "second"]
    model = Script(message("third answer"))
    await Runner.run(Agent(name="agent", model=model), "third", session=session)
    assert [item["content"] for item in model.inputs[0] if item.get("role") == "user"] == ["first", "second", "third"]
    assert not [item for item in model.inputs[0] if item.get("type") == "function_call"]
    assert (await session.get_items())[: len(before)] == before


def test_a_session_serves_event_loops_in_sequence(open: Open) -> None:
    session = open()
    for n in range(3):
        asyncio.run(session.add_items([user(n)]))
    model = Script(message("a"), message("b"))
    for question in "xy":
        Runner.run_sync(Agent(name="agent", model=model), question, session=session)
    assert len(asyncio.run(session.get_items())) == 7
    assert [item["content"] for item in model.inputs[1] if item.get("role") == "user"] == [0, 1, 2, "x", "y"]


def test_a_session_serves_concurrent_event_loops(open: Open) -> None:
    session = open()

    async def add() -> None:
        await asyncio.gather(*(session.add_items([user(n), user(n)]) for n in range(20)))

    threads = [threading.Thread(target=lambda: asyncio.run(add())) for _ in range(4)]
    run_all(threads)
    contents = [item["content"] for item in asyncio.run(session.get_items())]
    assert sorted(contents) == sorted([n for n in range(20)] * 8)
    assert contents[::2] == contents[1::2]


async def test_closing_leaves_the_callers_client_open(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        shared = ThreadkeepSession(unique(), client=client)
        await shared.get_items()
        await shared.close()
        await shared.get_items()
    assert proxy.connections == 1
    async with ThreadkeepSession(unique(), base_url=proxy.url, api_key=API_KEY) as own:
        await own.get_items()
    await own.close()
    await own.get_items()
    assert proxy.connections == 3
    await own.close()


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("openai_agents.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "4 items are stored",
    ]


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[openai-agents]"' in error_without("agents", "threadkeep.openai_agents")
