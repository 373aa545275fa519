"""Tests behaviour that the framework's in-memory cache and ours share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest
from langgraph.cache.base import BaseCache
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy
from support.adapters import NAMES
from support.server import API_KEY, Server

from threadkeep import Threadkeep, TooLarge
from threadkeep.langgraph import ThreadkeepCache

Adapt = Callable[[Any], Any]


@pytest.fixture
def ours(settings: dict[str, str]) -> Iterator[ThreadkeepCache[Any]]:
    cache: ThreadkeepCache[Any] = ThreadkeepCache(**settings, prefix=uuid.uuid4().hex[:20])
    yield cache
    cache.close()


@pytest.fixture(params=["threadkeep", "memory"])
def cache(request: pytest.FixtureRequest, adapt: Adapt) -> Any:
    return adapt(request.getfixturevalue("ours") if request.param == "threadkeep" else InMemoryCache())


def test_values_are_cached(cache: BaseCache[Any]) -> None:
    keys: Any = [((name, "ns"), name) for name in NAMES] + [((), "key")]
    assert cache.get(keys) == {}
    values = {key: {"number": number, "bytes": b"\0:"} for number, key in enumerate(keys)}
    cache.set({key: (value, None) for key, value in values.items()})
    assert cache.get([*keys, (("other",), "key")]) == values
    assert cache.get([]) == {}


def test_an_expired_value_is_not_returned(cache: BaseCache[Any]) -> None:
    key = (("a",), "key")
    cache.set({key: (1, 60)})
    assert cache.get([key]) == {key: 1}
    cache.set({key: (2, 0)})
    assert cache.get([key]) == {}


def test_namespaces_are_cleared_separately(cache: BaseCache[Any]) -> None:
    keys: Any = [(namespace, key) for namespace in [("a",), ("a", "b"), ("b",)] for key in "12"]
    cache.set({key: (key[1], None) for key in keys})
    cache.clear([("a",), ("none",)])
    assert set(cache.get(keys)) == set(keys[2:])
    cache.clear()
    assert cache.get(keys) == {}


def test_ttls_are_in_seconds(ours: ThreadkeepCache[Any], adapt: Adapt, server: Server) -> None:
    adapt(ours).set({(("a",), "1"): (1, 3_600), (("a",), "2"): (1, None)})
    with Threadkeep(server.url, api_key=API_KEY) as client:
        namespace = client.kv(ours._resource.path.rpartition("/")[2])
        times = [(info.expires_at, info.updated_at) for info in namespace.keys()]
    ttls = [(expires_at - updated_at).total_seconds() for expires_at, updated_at in times if expires_at and updated_at]
    assert [round(seconds) for seconds in ttls] == [3_600]


def test_a_value_that_does_not_fit_is_rejected(ours: ThreadkeepCache[Any], adapt: Adapt) -> None:
    with pytest.raises(TooLarge):
        adapt(ours).set({(("a",), "key"): ("x" * 1_100_000, None)})


def test_a_graph_does_not_run_a_cached_node_again(ours: ThreadkeepCache[Any], adapt: Adapt) -> None:
    class State(TypedDict):
        n: int

    runs = []

    def node(state: State) -> State:
        runs.append(state["n"])
        return {"n": state["n"] + 1}

    builder = StateGraph(State)
    builder.add_node("node", node, cache_policy=CachePolicy(ttl=60))
    builder.add_edge(START, "node")
    graph = adapt(builder.compile(cache=ours))
    assert [graph.invoke({"n": n})["n"] for n in (1, 1, 2)] == [2, 2, 3]
    assert runs == [1, 2]
