"""Compares ThreadkeepSaver with other LangGraph checkpointers: langgraph_saver.py [CHECKPOINTS].

THREADKEEP_URL and THREADKEEP_API_KEY name the server. REDIS_URL names a Redis, which may be the server's. Each saver
stores and reads the checkpoints of a growing conversation. Two tasks write to each checkpoint. Prints wall
time and this process's CPU time per call, for blocking calls and with 16 calls in flight. Skips savers that are not
installed or do not work on this Redis. langgraph-checkpoint-redis needs RedisJSON and RediSearch.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from threadkeep.langgraph import ThreadkeepSaver

IN_FLIGHT = 16
PER_THREAD = 20
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")


@contextmanager
def threadkeep() -> Iterator[Any]:
    with ThreadkeepSaver() as saver:
        yield saver


@contextmanager
def redis() -> Iterator[Any]:
    from langgraph.checkpoint.redis import RedisSaver

    with RedisSaver.from_conn_string(REDIS_URL) as saver:
        saver.setup()
        yield saver


@contextmanager
def plainredis() -> Iterator[Any]:
    from langgraph_checkpoint_plainredis import RedisSaver

    saver = RedisSaver(url=REDIS_URL)
    yield saver
    saver.close()


@contextmanager
def sqlite() -> Iterator[Any]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with tempfile.TemporaryDirectory() as directory, SqliteSaver.from_conn_string(f"{directory}/db") as saver:
        yield saver


@contextmanager
def memory() -> Iterator[Any]:
    yield InMemorySaver()


@asynccontextmanager
async def async_threadkeep() -> AsyncIterator[Any]:
    async with ThreadkeepSaver() as saver:
        yield saver


@asynccontextmanager
async def async_redis() -> AsyncIterator[Any]:
    from langgraph.checkpoint.redis import AsyncRedisSaver

    async with AsyncRedisSaver.from_conn_string(REDIS_URL) as saver:
        await saver.asetup()
        yield saver


@asynccontextmanager
async def async_plainredis() -> AsyncIterator[Any]:
    from langgraph_checkpoint_plainredis import AsyncRedisSaver

    saver = AsyncRedisSaver(url=REDIS_URL)
    yield saver
    await saver.aclose()


@asynccontextmanager
async def async_sqlite() -> AsyncIterator[Any]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    with tempfile.TemporaryDirectory() as directory:
        async with AsyncSqliteSaver.from_conn_string(f"{directory}/db") as saver:
            yield saver


@asynccontextmanager
async def async_memory() -> AsyncIterator[Any]:
    yield InMemorySaver()


SAVERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "threadkeep": (threadkeep, async_threadkeep),
    "langgraph-checkpoint-redis": (redis, async_redis),
    "langgraph-checkpoint-plainredis": (plainredis, async_plainredis),
    "langgraph-checkpoint-sqlite": (sqlite, async_sqlite),
    "memory": (memory, async_memory),
}


class Costs:
    def __init__(self) -> None:
        self._costs: dict[str, tuple[float, float, int]] = {}

    @contextmanager
    def of(self, name: str, calls: int) -> Iterator[None]:
        clock, cpu = time.perf_counter(), time.process_time()
        yield
        spent = (time.perf_counter() - clock, time.process_time() - cpu, calls)
        before = self._costs.get(name, (0.0, 0.0, 0))
        self._costs[name] = tuple(map(sum, zip(before, spent, strict=True)))  # type: ignore[assignment]

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {clock / calls * 1e6:.0f} us ({cpu / calls * 1e6:.0f} us of CPU)"
            for name, (clock, cpu, calls) in self._costs.items()
        )


class Conversation:
    """Checkpoints of a thread. Each adds a question and an answer."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self._thread: dict[str, Any] = {"thread_id": uuid.uuid4().hex, "checkpoint_ns": ""}
        self._versions: dict[str, Any] = {"messages": None, "turns": None}
        self.config: Any = {"configurable": self._thread}
        self.latest: Any = {"configurable": dict(self._thread)}
        self.messages: list[Any] = []

    def put_arguments(self) -> tuple[Any, ...]:
        number = len(self.messages) // 2
        text = f"{number}: how long does green tea have to steep, and how hot is the water? " * 3
        self.messages += [HumanMessage(text, id=f"q{number}"), AIMessage(text * 2, id=f"a{number}")]
        self._versions = {name: self._saver.get_next_version(old, None) for name, old in self._versions.items()}
        values = {"messages": list(self.messages), "turns": number}
        checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": self._versions}
        return self.config, checkpoint, {"source": "loop", "step": number, "parents": {}}, self._versions

    def writes_arguments(self, task: int) -> tuple[Any, ...]:
        return (
            self.config,
            [("messages", self.messages[-1:]), ("turns", 1)],
            str(uuid.uuid4()),
            f"~__pregel_pull, {task}",
        )

    def check(self, found: Any) -> None:
        assert found.checkpoint["channel_values"]["messages"] == self.messages and len(found.pending_writes) == 4


def blocking(saver: Any, checkpoints: int) -> Costs:
    costs = Costs()
    for measured in (False, True):  # the first round warms up
        costs = Costs()
        for _ in range(checkpoints // PER_THREAD if measured else 1):
            conversation = Conversation(saver)
            for _ in range(PER_THREAD):
                arguments = conversation.put_arguments()
                with costs.of("put", 1):
                    conversation.config = saver.put(*arguments)
                writes = [conversation.writes_arguments(task) for task in range(2)]
                with costs.of("put_writes", 2):
                    for arguments in writes:
                        saver.put_writes(*arguments)
                with costs.of("get_tuple", 1):
                    found = saver.get_tuple(conversation.latest)
                conversation.check(found)
    return costs


async def in_flight(saver: Any, checkpoints: int) -> Costs:
    async def together(calls: list[Awaitable[Any]]) -> list[Any]:
        return await asyncio.gather(*calls)

    costs = Costs()
    for measured in (False, True):
        costs = Costs()
        for _ in range(max(checkpoints // PER_THREAD // IN_FLIGHT, 1) if measured else 1):
            conversations = [Conversation(saver) for _ in range(IN_FLIGHT)]
            for _ in range(PER_THREAD):
                puts = [conversation.put_arguments() for conversation in conversations]
                with costs.of("put", IN_FLIGHT):
                    configs = await together([saver.aput(*arguments) for arguments in puts])
                for conversation, config in zip(conversations, configs, strict=True):
                    conversation.config = config
                writes = [conversation.writes_arguments(task) for conversation in conversations for task in range(2)]
                with costs.of("put_writes", 2 * IN_FLIGHT):
                    await together([saver.aput_writes(*arguments) for arguments in writes])
                with costs.of("get_tuple", IN_FLIGHT):
                    found = await together([saver.aget_tuple(conversation.latest) for conversation in conversations])
                for conversation, saved in zip(conversations, found, strict=True):
                    conversation.check(saved)
    return costs


async def measure_in_flight(open_saver: Callable[[], Any], checkpoints: int) -> Costs:
    async with open_saver() as saver:
        return await in_flight(saver, checkpoints)


def main(checkpoints: int) -> None:
    for name, (open_saver, open_async) in SAVERS.items():
        try:
            with open_saver() as saver:
                print(f"{name}: {blocking(saver, checkpoints)}", flush=True)
            costs = asyncio.run(measure_in_flight(open_async, checkpoints))
            print(f"{name}, {IN_FLIGHT} in flight: {costs}", flush=True)
        except Exception as error:
            print(f"{name}: skipped: {type(error).__name__}: {str(error)[:120]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
