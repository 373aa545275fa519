"""A LangGraph graph that waits for approval. Stores its checkpoints and long-term memory in threadkeep."""

import uuid
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, interrupt

from threadkeep.langgraph import ThreadkeepSaver, ThreadkeepStore

PERSON = ("people", f"ada {uuid.uuid4()}")


class State(TypedDict):
    request: str


def ask(state: State, *, store: BaseStore) -> None:
    if interrupt(f"May I {state['request']}?"):
        store.put(PERSON, state["request"], {"approved": True})


with ThreadkeepSaver() as saver, ThreadkeepStore() as store:
    builder = StateGraph(State)
    builder.add_node(ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=saver, store=store)
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}

    print(graph.invoke({"request": "pay 20"}, config)["__interrupt__"][0].value)
    graph.invoke(Command(resume=True), config)  # any process could do this
    print("Approved:", [item.key for item in store.search(PERSON, filter={"approved": True})])
    print(len(list(graph.get_state_history(config))), "checkpoints")
