"""Tests behaviour that our store shares with the framework's in-memory store, and behaviour that only our store has."""

from __future__ import annotations

import asyncio
import datetime
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from graphs import WRITES
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from support.adapters import NAMES, VALUES, start, unique
from support.proxy import Proxy, header_of
from support.server import API_KEY, Server
from test_langgraph_saver import GRAPHS

from threadkeep import InvalidResponse, Threadkeep, TooLarge
from threadkeep._adapter import namespace_name
from threadkeep.langgraph import ThreadkeepStore

Adapt = Callable[[Any], Any]
LABELS = [name.replace(".", ",").replace("\0", "") for name in NAMES if name] + ["%", "//", "a%2fb"]


def new_prefix() -> str:
    return uuid.uuid4().hex[:20]


@pytest.fixture
def ours(settings: dict[str, str]) -> Iterator[ThreadkeepStore]:
    with ThreadkeepStore(**settings, prefix=new_prefix()) as store:
        yield store


@pytest.fixture(params=["threadkeep", "memory"])
def store(request: pytest.FixtureRequest, adapt: Adapt) -> Any:
    return adapt(request.getfixturevalue("ours") if request.param == "threadkeep" else InMemoryStore())


def keys_of(items: list[Any]) -> list[str]:
    return sorted(item.key for item in items)


def test_items_come_back_equal(store: BaseStore) -> None:
    value = {str(n): value for n, value in enumerate(VALUES)}
    store.put(("a", "b"), "key", value)
    item = store.get(("a", "b"), "key")
    assert item and (item.namespace, item.key, item.value) == (("a", "b"), "key", value)
    assert item.created_at.tzinfo and item.created_at <= item.updated_at
    [found] = store.search(("a",))
    assert (found.namespace, found.key, found.value, found.score) == (("a", "b"), "key", value, None)
    assert (found.created_at, found.updated_at) == (item.created_at, item.updated_at)
    store.delete(("a", "b"), "key")
    assert store.get(("a", "b"), "key") is None
    store.delete(("a", "b"), "key")


@pytest.mark.parametrize("key", NAMES, ids=range(len(NAMES)))
def test_keys_can_be_any_text(store: BaseStore, key: str) -> None:
    store.put(("a",), key, {"is": key})
    store.put(("a",), f"{key}/", {})
    item = store.get(("a",), key)
    assert item and item.value == {"is": key}
    assert keys_of(store.search(("a",))) == sorted([key, f"{key}/"])


def test_labels_can_be_any_text(store: BaseStore) -> None:
    namespaces = sorted({(label,) for label in LABELS} | {("a", label) for label in LABELS})
    for namespace in namespaces:
        store.put(namespace, "key", {"namespace": list(namespace)})
    assert store.list_namespaces(limit=1_000) == namespaces
    for namespace in namespaces:
        item = store.get(namespace, "key")
        assert item and item.value == {"namespace": list(namespace)}
        found = store.search(namespace)
        assert [item.namespace for item in found] == [namespace]
        assert namespace in store.list_namespaces(prefix=namespace, limit=1_000)


def test_searches_cover_whole_labels(store: BaseStore) -> None:
    for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a b",), ("A",)]:
        store.put(namespace, "/".join(namespace), {})
    assert keys_of(store.search(("a",))) == ["a", "a/b", "a/b/c"]
    assert keys_of(store.search(("a", "b"))) == ["a/b", "a/b/c"]
    assert len(store.search(())) == 6
    assert store.search(("b",)) == []


FILTERS: list[dict[str, Any]] = [
    {},
    {"n": 1},
    {"n": {"$eq": 1}},
    {"n": {"$ne": 1}},
    {"n": {"$gt": 1}},
    {"n": {"$gte": "1"}},
    {"n": {"$lt": 2, "$gte": 1}},
    {"n": {"$lte": 1.5}, "text": "even"},
    {"missing": None},
    {"missing": {"$ne": 1}},
    {"object": {"a": 1}},
    {"object": {"a": {"$gt": 1}}},
    {"list": [1, 0]},
    {"list": [{"$gt": 0}, 0]},
    {"list": (1,)},
    {"text": {"a": 1}},
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_filters_compare_like_the_in_memory_store(ours: ThreadkeepStore, adapt: Adapt, filter: dict[str, Any]) -> None:
    memory = InMemoryStore()
    for store in (ours, memory):
        for n in range(4):
            text = "odd" if n % 2 else "even"
            store.put(("a",), str(n), {"n": n, "text": text, "object": {"a": n, "b": 0}, "list": [n, 0]})
    expected = keys_of(memory.search(("a",), filter=filter))
    assert keys_of(adapt(ours).search(("a",), filter=filter)) == expected


def test_invalid_filters_raise_like_the_in_memory_store(store: BaseStore) -> None:
    store.put(("a",), "key", {"text": "t"})
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("a",), filter={"text": {"$in": ["t"]}})
    with pytest.raises((TypeError, ValueError)):
        store.search(("a",), filter={"missing": {"$gt": 1}})


def test_pages_of_a_search_have_each_item_once(store: BaseStore) -> None:
    for n in range(25):
        store.put(("a", str(n % 3)), str(n), {"even": n % 2 == 0})
    pages = [store.search(("a",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert list(map(len, pages)) == [10, 10, 5, 0]
    assert keys_of([item for page in pages for item in page]) == sorted(map(str, range(25)))
    filtered = [store.search(("a",), filter={"even": True}, limit=10, offset=offset) for offset in (0, 10)]
    assert keys_of([item for page in filtered for item in page]) == sorted(map(str, range(0, 25, 2)))


def test_namespaces_are_listed(store: BaseStore) -> None:
    namespaces = [("a", "x", "1"), ("a", "x", "2"), ("a", "y"), ("b", "x"), ("b", "x", "1"), ("c",)]
    for namespace in namespaces:
        store.put(namespace, "1", {})
        store.put(namespace, "2", {})
    assert store.list_namespaces() == namespaces
    assert store.list_namespaces(prefix=("a",)) == namespaces[:3]
    assert store.list_namespaces(prefix=("*", "x")) == [namespaces[n] for n in (0, 1, 3, 4)]
    assert store.list_namespaces(suffix=("1",)) == [namespaces[n] for n in (0, 4)]
    assert store.list_namespaces(suffix=("x", "*")) == [namespaces[n] for n in (0, 1, 4)]
    assert store.list_namespaces(prefix=("a",), suffix=("2",)) == [namespaces[1]]
    assert store.list_namespaces(max_depth=1) == [("a",), ("b",), ("c",)]
    assert store.list_namespaces(max_depth=2, offset=1, limit=2) == [("a", "y"), ("b", "x")]
    store.delete(("c",), "1")
    assert ("c",) in store.list_namespaces()


def test_results_are_in_order_and_reads_precede_puts(store: BaseStore) -> None:
    store.put(("a",), "1", {"v": 0})
    results = store.batch(
        [
            PutOp(("a",), "1", {"v": 1}),
            GetOp(("a",), "1"),
            PutOp(("a",), "2", {"v": 2}),
            SearchOp(("a",)),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
            GetOp(("a",), "none"),
            PutOp(("a",), "1", {"v": 3}),
            PutOp(("a",), "3", {"v": 3}),
            PutOp(("a",), "3", None),
        ]
    )
    assert results[1].value == {"v": 0}  # type: ignore[union-attr]
    assert [item.key for item in results[3]] == ["1"]  # type: ignore[union-attr]
    assert results[4] == [("a",)]
    assert [results[n] for n in (0, 2, 5, 6, 7, 8)] == [None] * 6
    found = {item.key: item.value for item in store.search(("a",))}
    assert found == {"1": {"v": 3}, "2": {"v": 2}}


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("a", 1), ("langgraph", "a")])
def test_namespaces_are_validated(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "key", {})


@pytest.mark.parametrize("op", [GetOp(("a.b",), "k"), PutOp(("",), "k", {}), SearchOp(("a.b",))])
def test_operations_of_a_batch_are_validated(ours: ThreadkeepStore, adapt: Adapt, op: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        adapt(ours).batch([PutOp(("a",), "k", {}), op])
    assert ours.get(("a",), "k") is None


def test_a_put_keeps_the_creation_time(ours: ThreadkeepStore, adapt: Adapt) -> None:
    store = adapt(ours)
    store.put(("a",), "key", {"v": 1})
    first = store.get(("a",), "key")
    store.put(("a",), "key", {"v": 2})
    second = store.get(("a",), "key")
    assert second.value == {"v": 2}
    assert second.created_at == first.created_at == first.updated_at < second.updated_at


def test_concurrent_puts_of_one_key_agree_on_its_creation_time(ours: ThreadkeepStore) -> None:
    async def put_all() -> None:
        await asyncio.gather(*(ours.aput(("a",), "key", {"by": n}) for n in range(10)))

    threads = [threading.Thread(target=lambda: asyncio.run(put_all())) for _ in range(2)]
    threads += [threading.Thread(target=ours.put, args=(("a",), "key", {"by": 0})) for _ in range(3)]
    for thread in threads:
        thread.start()
    times = set()
    while any(thread.is_alive() for thread in threads):
        item = ours.get(("a",), "key")
        if item:
            times.add(item.created_at)
    assert len(times) == 1


def test_reading_an_item_restarts_its_ttl(ours: ThreadkeepStore, adapt: Adapt, server: Server) -> None:
    store = adapt(ours)
    store.put(("a",), "key", {"a": 1}, ttl=60)
    store.put(("a",), "forever", {})
    with Threadkeep(server.url, api_key=API_KEY) as client:
        entries = client.kv(ours._resource.path.rpartition("/")[2])

        def expiry() -> datetime.datetime:
            expiries = [entry.expires_at for entry in entries.entries()]
            assert len(expiries) == 2 and None in expiries
            return next(filter(None, expiries))

        first = expiry()
        item = store.get(("a",), "key", refresh_ttl=False)
        assert 3_590 < (first - item.updated_at).total_seconds() < 3_610
        store.search(("a",), refresh_ttl=False)
        assert expiry() == first
        assert store.get(("a",), "key") == item
        second = expiry()
        assert second > first
        store.search(("a",))
        assert expiry() > second
        assert store.get(("a",), "key") == item


def test_ttls_have_defaults(settings: dict[str, str], server: Server, adapt: Adapt) -> None:
    prefix = new_prefix()
    ttl = {"default_ttl": 5.0, "refresh_on_read": False}
    with ThreadkeepStore(**settings, prefix=prefix, ttl=ttl) as ours, Threadkeep(server.url, api_key=API_KEY) as client:
        store = adapt(ours)
        store.put(("a",), "key", {})
        entries = client.kv(namespace_name(prefix, "store", ""))
        [before] = [entry.expires_at for entry in entries.entries()]
        assert before is not None
        assert store.get(("a",), "key").value == {}
        assert [entry.expires_at for entry in entries.entries()] == [before]
        store.put(("a",), "key", {}, ttl=None)
        assert [entry.expires_at for entry in entries.entries()] == [None]


def test_an_item_that_does_not_fit_is_rejected(ours: ThreadkeepStore, adapt: Adapt) -> None:
    store = adapt(ours)
    with pytest.raises(TooLarge):
        store.put(("a",), "key", {"a": "x" * 1_100_000})
    with pytest.raises(TypeError):
        store.put(("a",), "key", {"a": object()})
    assert store.get(("a",), "key") is None


def test_many_large_items_are_found(store: BaseStore) -> None:
    for n in range(5):
        store.put(("a",), str(n), {"text": f"{n}" * 900_000})
    assert keys_of(store.search(("a",))) == list("01234")
    results = store.batch([GetOp(("a",), str(n)) for n in range(5)])
    assert [item.value["text"][0] for item in results] == list("01234")  # type: ignore[union-attr]


def test_a_store_survives_lost_responses(settings: dict[str, str], proxy: Proxy, adapt: Adapt) -> None:
    with ThreadkeepStore(**{**settings, "base_url": proxy.url}, prefix=new_prefix()) as ours:
        store = adapt(ours)
        proxy.cut_every(2)
        for n in range(10):
            store.put(("a",), "key", {"n": n}, ttl=60)
            assert store.get(("a",), "key").value == {"n": n}
        assert store.list_namespaces() == [("a",)]
        store.delete(("a",), "key")
        assert store.search(("a",)) == []


def test_two_processes_put_into_one_store(server: Server, settings: dict[str, str]) -> None:
    thread_id = unique()
    processes = [start(GRAPHS, "write", thread_id, "id", name, url=server.url) for name in "pq"]
    assert [process.wait(120) for process in processes] == [0, 0]
    with ThreadkeepStore(**settings) as store:
        found = store.search(("shared", thread_id.split()[0]), limit=WRITES + 1)
    assert keys_of(found) == sorted(map(str, range(WRITES)))


@pytest.mark.parametrize("tag", [b"", b'\r\netag: "1-altered"'], ids=["removed", "altered"])
def test_a_put_depends_on_the_version_if_a_proxy_alters_etags(
    settings: dict[str, str], proxy: Proxy, tag: bytes
) -> None:
    with ThreadkeepStore(**{**settings, "base_url": proxy.url}, prefix=new_prefix()) as store:
        store.put(("a",), "key", {"a": 1})
        proxy.alter = lambda response: re.sub(rb"(?i)\r\netag: [^\r]*", tag, response)
        store.put(("a",), "key", {"a": 2})
        item = store.get(("a",), "key")
        assert item and item.value == {"a": 2}
        puts = [request for request in proxy.requests if request.startswith(b"PUT")]
        assert [header_of(put, "if-match") for put in puts] == [None, '"1"']


def test_a_put_fails_if_a_proxy_removes_etags_and_versions(settings: dict[str, str], proxy: Proxy) -> None:
    with ThreadkeepStore(**{**settings, "base_url": proxy.url}, prefix=new_prefix()) as store:
        store.put(("a",), "key", {"a": 1})
        proxy.alter = lambda response: re.sub(rb"(?i)\r\n(etag|x-thread-version): [^\r]*", b"", response)
        with pytest.raises(InvalidResponse, match="ETag"):
            store.put(("a",), "key", {"a": 2})
        proxy.alter = lambda response: response
        item = store.get(("a",), "key")
        assert item and item.value == {"a": 1}
