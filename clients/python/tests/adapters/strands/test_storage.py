from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strands import Agent
from strands.session import SnapshotSessionManager
from strands.storage import InMemoryStorage, Storage
from strands.types.exceptions import StorageError
from strands_script import Script, texts_of
from strands_writer import WRITES
from support.adapters import NAMES, error_without, output_of_example, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep
from threadkeep.strands import ThreadkeepStorage

WRITER = Path(__file__).parent / "strands_writer.py"
MIB = 1_048_576
Open = Callable[..., ThreadkeepStorage]


@pytest.fixture
def open(server: Server) -> Open:
    def open(prefix: str | None = None, **settings: Any) -> ThreadkeepStorage:
        settings = {"base_url": server.url, "api_key": API_KEY, **settings}
        return ThreadkeepStorage(prefix or unique()[:20], **settings)

    return open


def test_a_storage_implements_the_frameworks_class(open: Open) -> None:
    assert isinstance(open(), Storage)


@pytest.mark.parametrize("data", [b"", b"\0\xff\r\n", "é 👋".encode(), bytes(MIB)], ids=len)
async def test_bytes_come_back_equal(open: Open, data: bytes) -> None:
    storage = open()
    await storage.write("key", data)
    assert await storage.read("key") == data


async def test_bytes_over_the_limit_change_nothing(open: Open) -> None:
    storage = open()
    await storage.write("key", b"before")
    with pytest.raises(StorageError, match="body_too_large"):
        await storage.write("key", bytes(MIB + 1))
    assert await storage.read("key") == b"before"


async def test_keys_behave_like_those_of_the_in_memory_storage(open: Open) -> None:
    storage, in_memory = open(), InMemoryStorage()
    rejected = set()
    for name in [*NAMES, "k:a", "?a=b#c", "z/é", "z/👋", "z/\uffff", "Z", "x" * 1_022, "x" * 1_023]:
        try:
            await storage.write(name, name.encode("utf-8", "surrogatepass"))
        except StorageError:
            rejected.add(name)
            with pytest.raises(StorageError):
                await storage.read(name)
        else:
            await in_memory.write(name, name.encode("utf-8", "surrogatepass"))
    assert rejected == {"", "..", "../a", "a\n\0b", "é 👋 \ud83d", "x" * 10_000, "x" * 9_999 + "y", "x" * 1_023}
    for query in ("", "z/", "x", "k", "/z", "%"):
        assert await storage.list(query) == await in_memory.list(query)
    for key in await in_memory.list():
        assert await storage.read(key) == await in_memory.read(key)


async def test_many_keys_are_listed_and_cleared(open: Open) -> None:
    storage = open()
    part = storage.namespace("part")
    keys = [f"{n:04}" for n in range(1_200)]
    await asyncio.gather(*(part.write(key, b"") for key in keys), storage.write("part-", b""))
    assert await part.list() == keys
    await part.clear()
    assert await storage.list() == ["part-"]
    await storage.clear()
    assert await storage.list() == []
    await storage.write("a", b"1")
    assert await storage.read("a") == b"1"


async def test_prefixes_keep_storages_apart(open: Open) -> None:
    await open("a").write("key", b"a")
    assert await open("b").list() == []
    for prefix in ("é", "a b", "x" * 21):
        with pytest.raises(ValueError):
            open(prefix)


async def test_a_call_with_a_lost_response_is_retried(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        storage = ThreadkeepStorage(unique()[:20], client=client)
        proxy.fail_once("cut")
        await storage.write("key", b"1")
        proxy.fail_once("cut")
        assert await storage.read("key") == b"1"
        proxy.fail_once("cut")
        assert await storage.list() == ["key"]
        proxy.fail_once("cut")
        await storage.delete("key")
        assert await storage.read("key") is None


async def test_failures_are_storage_errors(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, max_retries=0) as client:
        storage = ThreadkeepStorage(client=client)
        proxy.fault = lambda request: "cut"
        calls = [storage.write("a", b""), storage.read("a"), storage.delete("a"), storage.list(), storage.clear()]
        for call in calls:
            with pytest.raises(StorageError):
                await call


async def test_a_failed_clear_stops_deleting(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        part = ThreadkeepStorage(unique()[:20], client=client).namespace("part")
        await asyncio.gather(*(part.write(str(n), b"") for n in range(20)))
        proxy.fail_once(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "DELETE")
        with pytest.raises(StorageError):
            await part.clear()
        deletions = sum(request.startswith(b"DELETE") for request in proxy.requests)
        assert len(await part.list()) == 20 - (deletions - 1) > 0


async def test_two_processes_lose_nothing(open: Open, proxy: Proxy) -> None:
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 7 == 0 else None

    proxy.fault = cut_some
    session_id = unique()
    processes = [start(WRITER, "write", session_id, name, url=proxy.url) for name in "ab"]
    assert [process.wait(120) for process in processes] == [0, 0]
    storage = open("strands").namespace(session_id)
    keys = [f"{name}/{n}" for name in "ab" for n in range(WRITES)]
    assert await storage.list() == sorted([*keys, "shared"])
    for key in keys:
        assert await storage.read(key) == key.replace("/", " ").encode()
    assert await storage.read("shared") in (f"a {WRITES - 1}".encode(), f"b {WRITES - 1}".encode())


def test_a_storage_serves_several_event_loops(open: Open) -> None:
    storage = open()

    async def write(name: str) -> None:
        await asyncio.gather(*(storage.write(f"{name}/{n}", b"") for n in range(20)))

    for name in "ab":
        asyncio.run(write(name))
    threads = [threading.Thread(target=lambda name=name: asyncio.run(write(name))) for name in "cdef"]
    run_all(threads)
    assert len(asyncio.run(storage.list())) == 120


def test_an_agent_continues_from_its_snapshot(open: Open) -> None:
    storage, session_id = open(), unique()
    for answer, expected in (("one", ["first"]), ("two", ["first", "one", "second"])):
        model = Script(answer)
        manager = SnapshotSessionManager(session_id, storage=storage)
        Agent(agent_id="agent", model=model, session_manager=manager, callback_handler=None)(expected[-1])
        assert texts_of(model.inputs[0]) == expected


def test_a_snapshot_continues_after_its_process_is_killed(open: Open, server: Server) -> None:
    session_id = unique()
    process = start(WRITER, "hang_with_snapshots", session_id, "", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()

    model = Script("third answer")
    manager = SnapshotSessionManager(session_id, storage=open("strands").namespace("snapshots"))
    agent = Agent(agent_id="agent", model=model, session_manager=manager, callback_handler=None)
    assert texts_of(agent.messages) == ["first", "first answer", "second"]
    agent("third")
    assert texts_of(agent.messages) == ["first", "first answer", "second", "third", "third answer"]


async def test_closing_leaves_the_callers_client_open(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        shared = ThreadkeepStorage(client=client)
        await shared.read("a")
        await shared.close()
        await shared.read("a")
    assert proxy.connections == 1
    async with ThreadkeepStorage(base_url=proxy.url, api_key=API_KEY) as own:
        await own.read("a")
    await own.close()
    await own.read("a")
    assert proxy.connections == 3
    await own.close()


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("strands_agents.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "4 messages are stored",
    ]


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[strands]"' in error_without("strands", "threadkeep.strands")
