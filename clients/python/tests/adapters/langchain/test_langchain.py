from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk
from langchain_core.stores import InMemoryByteStore
from support.adapters import NAMES, error_without, output_of_example, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all
from writer import TURNS

from threadkeep import AsyncThreadkeep, Threadkeep, TooLarge
from threadkeep._adapter import namespace_name, thread_id
from threadkeep.langchain import ThreadkeepByteStore, ThreadkeepCache, ThreadkeepChatMessageHistory

WRITER = Path(__file__).parent / "writer.py"
Adapt = Callable[[Any], Any]
BYTES = [b"", b"plain", bytes(range(256)), "é 👋".encode(), b"x" * 1_000_000]
MESSAGES = [
    SystemMessage("é 👋 \u2028 \ud83d"),
    HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,"}}], id="1"),
    AIMessage("", tool_calls=[{"name": "t", "args": {"a": [1, 0.5, None]}, "id": "c"}], response_metadata={"a": 1}),
    ToolMessage("result", tool_call_id="c", artifact={"a": 1}),
    HumanMessage("same"),
    HumanMessage("same"),
]


def new_prefix() -> str:
    return uuid.uuid4().hex[:20]


@pytest.fixture(params=["threadkeep", "memory"])
def store(request: pytest.FixtureRequest, settings: dict[str, str], adapt: Adapt) -> Iterator[Any]:
    with ThreadkeepByteStore(**settings, prefix=new_prefix()) as ours:
        yield adapt(ours if request.param == "threadkeep" else InMemoryByteStore())


def test_bytes_come_back_equal(store: Any) -> None:
    pairs = [(str(n), value) for n, value in enumerate(BYTES * 8)]
    store.mset([("0", b"first"), *pairs])
    assert store.mget([key for key, _ in pairs] + ["none", "0"]) == [value for _, value in pairs] + [None, BYTES[0]]
    assert store.mget([]) == []
    store.mdelete([key for key, _ in pairs] + ["none"])
    assert list(store.yield_keys()) == []


def test_keys_can_be_any_text_and_are_listed_by_prefix(store: Any) -> None:
    long = [f"{'é' * 5_000}{end}" for end in ("", "a", "b")] + ["👋" * 225, "👋" * 226]
    names = [*NAMES, *long, "a%", "a%0041", "%%", "k:", "a" * 900, "a" * 901, "\x85"]
    store.mset([(name, repr(name).encode()) for name in names])
    assert store.mget(names) == [repr(name).encode() for name in names]
    assert sorted(store.yield_keys()) == sorted(names)
    for prefix in [*names, "a", "é" * 4_000, "é" * 450, "👋" * 100, "x" * 9_999, "none"]:
        expected = sorted(name for name in names if name.startswith(prefix))
        assert sorted(store.yield_keys(prefix=prefix)) == expected
    store.mdelete(names[::2])
    assert sorted(store.yield_keys()) == sorted(names[1::2])


def test_many_keys_are_listed_page_by_page(settings: dict[str, str], proxy: Proxy) -> None:
    with ThreadkeepByteStore(**{**settings, "base_url": proxy.url}, prefix=new_prefix()) as store:
        keys = [f"{n:04}" for n in range(1_200)]
        store.mset([(key, b"") for key in keys])
        proxy.requests.clear()
        listed = store.yield_keys()
        assert next(listed) == "0000"
        assert len(proxy.requests) == 1
        assert list(listed) == keys[1:]


def test_a_value_that_is_not_bytes_or_too_large_is_rejected(settings: dict[str, str], adapt: Adapt) -> None:
    with ThreadkeepByteStore(**settings, prefix=new_prefix()) as ours:
        store = adapt(ours)
        with pytest.raises(TypeError):
            store.mset([("a", b""), ("b", "text")])
        with pytest.raises(TooLarge):
            store.mset([("b", b"x" * 1_100_000)])
        assert store.mget(["a", "b"]) == [None, None]


def test_a_store_survives_lost_responses(settings: dict[str, str], proxy: Proxy, adapt: Adapt) -> None:
    with ThreadkeepByteStore(**{**settings, "base_url": proxy.url}, prefix=new_prefix()) as ours:
        store = adapt(ours)
        proxy.cut_every(3)
        for n in range(10):
            store.mset([("key", str(n).encode()), (str(n), b"")])
            assert store.mget(["key"]) == [str(n).encode()]
        store.mdelete([str(n) for n in range(10)])
        assert list(store.yield_keys()) == ["key"]


GENERATIONS = [
    Generation(text="é 👋 \ud83d", generation_info={"finish_reason": "stop"}),
    GenerationChunk(text=""),
    *(ChatGeneration(message=message) for message in MESSAGES),
    ChatGenerationChunk(message=AIMessageChunk("chunk", id="1"), generation_info={"logprobs": [0.5]}),
]


@pytest.fixture(params=["threadkeep", "memory"])
def cache(request: pytest.FixtureRequest, settings: dict[str, str], adapt: Adapt) -> Iterator[Any]:
    with ThreadkeepCache(**settings, prefix=new_prefix()) as ours:
        yield adapt(ours if request.param == "threadkeep" else InMemoryCache())


def test_answers_come_back_equal(cache: Any) -> None:
    cache.update("prompt", "llm", GENERATIONS)
    found = cache.lookup("prompt", "llm")
    assert found == GENERATIONS
    assert list(map(type, found)) == list(map(type, GENERATIONS))
    cache.update("prompt", "llm", [])
    assert cache.lookup("prompt", "llm") == []


def test_prompts_can_be_any_text(cache: Any) -> None:
    pairs = [(name, "llm") for name in NAMES] + [("llm", name) for name in NAMES] + [("ab", "c"), ("a", "bc")]
    for n, pair in enumerate(pairs):
        cache.update(*pair, [Generation(text=str(n))])
    for n, pair in enumerate(pairs):
        assert cache.lookup(*pair) == [Generation(text=str(n))]
    cache.clear()
    assert [cache.lookup(*pair) for pair in pairs] == [None] * len(pairs)


def test_a_repeated_prompt_does_not_call_the_model(settings: dict[str, str], adapt: Adapt) -> None:
    with ThreadkeepCache(**settings, prefix=new_prefix()) as ours:
        set_llm_cache(ours)
        try:
            model = adapt(FakeListChatModel(responses=["first", "second"]))
            assert [model.invoke(question).content for question in ("a", "a", "b")] == ["first", "first", "second"]
        finally:
            set_llm_cache(None)


def test_an_answer_that_cannot_be_cached_is_rejected(settings: dict[str, str], adapt: Adapt) -> None:
    class Special(Generation):
        pass

    with ThreadkeepCache(**settings, prefix=new_prefix()) as ours:
        cache = adapt(ours)
        for answer in (Special(text=""), Generation(text="", generation_info={"a": object()})):
            with pytest.raises(TypeError):
                cache.update("prompt", "llm", [answer])
        with pytest.raises(TooLarge):
            cache.update("prompt", "llm", [Generation(text="x" * 1_100_000)])
        assert cache.lookup("prompt", "llm") is None


def test_values_have_the_configured_ttl(settings: dict[str, str], server: Server, adapt: Adapt) -> None:
    prefix = new_prefix()
    with ThreadkeepByteStore(**settings, prefix=prefix, ttl_seconds=3_600) as store:
        adapt(store).mset([("a", b"")])
    with ThreadkeepCache(**settings, prefix=prefix, ttl_seconds=3_600) as cache:
        adapt(cache).update("a", "b", [])
    with Threadkeep(server.url, api_key=API_KEY) as client:
        infos = [info for kind in ("bytes", "cache") for info in client.kv(namespace_name(prefix, kind, "")).keys()]
    ttls = [
        (info.expires_at - info.updated_at).total_seconds() for info in infos if info.expires_at and info.updated_at
    ]
    assert [round(seconds) for seconds in ttls] == [3_600, 3_600]


class Messages:
    def __init__(self, history: Any, adapt: Adapt) -> None:
        self._history = history
        self._is_async = adapt(history) is not history
        self._adapted = adapt(history)

    def get(self) -> list[Any]:
        return self._adapted.get_messages() if self._is_async else self._history.messages  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapted, name)


@pytest.fixture
def open_history(settings: dict[str, str], adapt: Adapt) -> Callable[..., Any]:
    def open_history(session_id: str | None = None, **more: Any) -> Any:
        session_id = unique() if session_id is None else session_id
        return Messages(ThreadkeepChatMessageHistory(session_id, **{**settings, **more}), adapt)

    return open_history


@pytest.fixture(params=["threadkeep", "memory"])
def history(request: pytest.FixtureRequest, open_history: Callable[..., Any], adapt: Adapt) -> Any:
    return open_history() if request.param == "threadkeep" else Messages(InMemoryChatMessageHistory(), adapt)


def test_messages_come_back_equal(history: Any) -> None:
    assert history.get() == []
    history.add_messages(MESSAGES)
    history.add_messages([])
    history.add_messages(MESSAGES[:1])
    assert history.get() == [*MESSAGES, MESSAGES[0]]


def test_a_cleared_history_can_be_used_immediately(history: Any) -> None:
    for _ in range(3):
        history.add_messages([HumanMessage("a")])
        history.clear()
        assert history.get() == []
    history.add_messages([HumanMessage("b")])
    assert history.get() == [HumanMessage("b")]


def test_many_messages_come_back_equal(open_history: Callable[..., Any]) -> None:
    history = open_history()
    messages = [HumanMessage(str(n)) for n in range(2_500)]
    history.add_messages(messages)
    assert history.get() == messages


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_session_ids_can_be_any_text(open_history: Callable[..., Any], name: str) -> None:
    prefix = new_prefix()
    history, other = open_history(name, prefix=prefix), open_history(f"{name}/", prefix=prefix)
    history.add_messages([HumanMessage(name)])
    assert [message.content for message in history.get()] == [name]
    assert other.get() == []


def test_a_history_has_the_configured_ttl(open_history: Callable[..., Any], server: Server) -> None:
    names = [unique(), unique()]
    open_history(names[0]).add_messages([HumanMessage("a")])
    open_history(names[1], ttl_seconds=7_200).add_messages([HumanMessage("a")])
    with Threadkeep(server.url, api_key=API_KEY) as client:
        found = [client.thread(thread_id("langchain", name)).info().ttl_seconds for name in names]
    assert found == [2_592_000, 7_200]


def test_lost_responses_duplicate_no_message(open_history: Callable[..., Any], proxy: Proxy) -> None:
    history = open_history(base_url=proxy.url)
    proxy.cut_every(3)
    for n in range(12):
        history.add_messages([HumanMessage(str(n)), AIMessage(str(n))])
    assert [message.content for message in history.get()] == [str(n) for n in range(12) for _ in range(2)]


def test_two_processes_lose_nothing(server: Server, settings: dict[str, str]) -> None:
    session_id, prefix = unique(), new_prefix()
    processes = [start(WRITER, session_id, prefix, name, url=server.url) for name in "pq"]
    assert [process.wait(120) for process in processes] == [0, 0]

    expected = [f"{name}{n}" for name in "pq" for n in range(TURNS)]
    with ThreadkeepChatMessageHistory(session_id, **settings) as history:
        contents = [message.content for message in history.messages]
    assert contents[::2] == contents[1::2]
    assert sorted(contents[::2]) == sorted(expected)
    with ThreadkeepByteStore(**settings, prefix=prefix) as store:
        assert sorted(store.yield_keys()) == sorted([*expected, "shared"])
        assert store.mget(expected) == [name[0].encode() for name in expected]


def test_a_killed_process_leaves_complete_turns(server: Server, settings: dict[str, str]) -> None:
    session_id, prefix = unique(), new_prefix()
    process = start(WRITER, session_id, prefix, "hang", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()
    with ThreadkeepChatMessageHistory(session_id, **settings) as history:
        history.add_messages([HumanMessage("next")])
        assert [message.content for message in history.messages] == ["hang0", "hang0", "next"]


def test_one_object_serves_several_event_loops_and_threads(settings: dict[str, str]) -> None:
    history = ThreadkeepChatMessageHistory(unique(), **settings)

    async def add() -> None:
        await asyncio.gather(*(history.aadd_messages([HumanMessage(str(n))]) for n in range(10)))

    asyncio.run(add())
    threads = [threading.Thread(target=lambda: asyncio.run(add())) for _ in range(3)]
    threads += [threading.Thread(target=history.add_messages, args=([HumanMessage("sync")],))]
    run_all(threads)
    contents = [message.content for message in history.messages]
    assert sorted(contents) == sorted([str(n) for n in range(10)] * 4 + ["sync"])
    history.close()


async def test_closing_leaves_the_callers_client_open(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        async with ThreadkeepByteStore(client=client, prefix=new_prefix()) as store:
            await store.amset([("a", b"1")])
            assert await asyncio.to_thread(store.mget, ["a"]) == [b"1"]
        await store.aclose()
        store.close()
        assert (await client.api_key()).name == "ops"


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[langchain]"' in error_without("langchain_core", "threadkeep.langchain")


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("langchain_memory.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "I read 1 messages. (from the cache)",
    ]
