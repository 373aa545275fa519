from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from threadkeep.langgraph import ThreadkeepSaver, ThreadkeepStore

WRITES = 40


def joined(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*state, *(item for write in writes for item in write)]


def config_of(thread_id: str, ns: str = "", id: str | None = None) -> Any:
    configurable = {"thread_id": thread_id, "checkpoint_ns": ns}
    return {"configurable": configurable if id is None else {**configurable, "checkpoint_id": id}}


def checkpoint_of(values: dict[str, Any], version: str = "1") -> Any:
    versions = dict.fromkeys(values, version)
    return {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}


class Log(TypedDict):
    log: Annotated[list[str], lambda old, new: [*old, *new]]


def parallel(saver: BaseCheckpointSaver[Any], width: int) -> Any:
    builder = StateGraph(Log)
    for number in range(width):
        builder.add_node(f"n{number}", lambda state, number=number: {"log": [f"n{number}"]})
        builder.add_edge(START, f"n{number}")
        builder.add_edge(f"n{number}", "last")
    builder.add_node("last", lambda state: {"log": ["last"]})
    builder.add_edge("last", END)
    return builder.compile(checkpointer=saver)


class Steps(TypedDict):
    steps: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]


def delta(saver: BaseCheckpointSaver[Any]) -> Any:
    """Builds a graph with one delta channel. Several nodes write to the channel concurrently."""
    builder = StateGraph(Steps)
    for name in "dbca":
        builder.add_node(name, lambda state, name=name: {"steps": [f"{name}{len(state['steps'])}"]})
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    return builder.compile(checkpointer=saver)


def waiting(saver: BaseCheckpointSaver[Any]) -> Any:
    """Builds a graph with a subgraph that waits for two answers, and with tasks that `Send` starts."""
    inner = StateGraph(Log)
    for name in ("first", "second"):
        inner.add_node(name, lambda state, name=name: {"log": [f"{name}: {interrupt(name)}"]})
    inner.add_edge(START, "first")
    inner.add_edge("first", "second")
    outer = StateGraph(Log)
    outer.add_node("inner", inner.compile())
    outer.add_node("fan", lambda state: {"log": ["fan"]})
    outer.add_node("worker", lambda state: {"log": [f"worker {state['n']}"]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "fan")
    outer.add_conditional_edges("fan", lambda state: [Send("worker", {"n": n}) for n in range(5)])
    return outer.compile(checkpointer=saver)


def two_tasks(saver: BaseCheckpointSaver[Any], is_first: bool) -> Any:
    def quick(state: Log) -> Any:
        return {"log": [f"quick of {'the first' if is_first else 'another'} process"]}

    def slow(state: Log) -> Any:
        if is_first:
            print("slow", flush=True)
            time.sleep(600)
        return {"log": ["slow"]}

    builder = StateGraph(Log)
    for node in (quick, slow):
        builder.add_node(node)
        builder.add_edge(START, node.__name__)
        builder.add_edge(node.__name__, END)
    return builder.compile(checkpointer=saver)


def write_tasks(thread_id: str, id: str, name: str) -> None:
    """Stores items and the writes of many tasks. Other processes write to some of the same tasks."""
    with ThreadkeepSaver() as saver, ThreadkeepStore() as store:
        for n in range(WRITES):
            saver.put_writes(config_of(thread_id, "", id), [("own", f"{name}{n}")], f"{name}{n}")
            saver.put_writes(config_of(thread_id, "", id), [("shared", name)], f"shared {n}")
            own_thread = saver.put(config_of(f"{thread_id} {name}"), checkpoint_of({"n": n}), {}, {"n": "1"})
            assert own_thread["configurable"]["thread_id"] == f"{thread_id} {name}"
            store.put(("shared", thread_id.split()[0]), str(n), {"by": name})


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write_tasks(*sys.argv[2:])
    else:
        two_tasks(ThreadkeepSaver(), is_first=True).invoke({"log": []}, config_of(sys.argv[2]))
