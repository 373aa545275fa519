from __future__ import annotations

import asyncio
import dataclasses
import datetime
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import WRITES, checkpoint_of, config_of, delta, parallel, two_tasks, waiting
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import ERROR, INTERRUPT, RESUME, SCHEDULED
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.types import Command
from support.adapters import NAMES, error_without, output_of_example, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server, wait_until
from support.threads import run_all

from threadkeep import AsyncThreadkeep, Threadkeep, ThreadkeepError, TransportError
from threadkeep._adapter import namespace_name
from threadkeep.langgraph import ThreadkeepCache, ThreadkeepSaver, ThreadkeepStore

GRAPHS = Path(__file__).parent / "graphs.py"
versions = map(str, itertools.count(1))
Adapt = Callable[[Any], Any]


def put(saver: Any, thread_id: str, values: dict[str, Any], parent: Any = None, ns: str = "", **metadata: Any) -> Any:
    version = next(versions)
    id = parent["configurable"]["checkpoint_id"] if parent else None
    checkpoint = checkpoint_of(values, version)
    return saver.put(config_of(thread_id, ns, id), checkpoint, metadata, dict.fromkeys(values, version))


def ids(configs: list[Any]) -> list[str]:
    return [config["configurable"]["checkpoint_id"] for config in configs]


def listed(saver: Any, *args: Any, **kwargs: Any) -> list[str]:
    return ids([found.config for found in saver.list(*args, **kwargs)])


def writes_of(saver: Any, config: Any) -> list[Any]:
    return saver.get_tuple(config).pending_writes  # type: ignore[no-any-return]


def entries_of(server: Server, thread_id: str) -> list[str]:
    with Threadkeep(server.url, api_key=API_KEY) as client:
        return [info.key for info in client.kv(namespace_name("langgraph", thread_id)).keys()]


@dataclasses.dataclass
class Custom:
    text: str


VALUES = {
    "empty text": "",
    "unicode": "é 👋 \u2028 \0",
    "number": 2**62,
    "float": 0.1,
    "none": None,
    "bytes": bytes(range(256)),
    "set": {1, 2},
    "time": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
    "messages": [HumanMessage("hi", id="1"), AIMessage("é", id="2", tool_calls=[{"name": "t", "args": {}, "id": "c"}])],
    "custom": Custom("text"),
    "at the limit of small values": b"x" * 4_094,
    "one more": b"x" * 4_095,
    "one part": b"y" * 899_000,
    "three parts": b"z" * 2_500_000,
}


def test_values_come_back_equal(checkpointer: Any) -> None:
    thread_id = unique()
    config = put(checkpointer, thread_id, VALUES, score=1.5, tags=["é"])
    checkpointer.put_writes(config, list(VALUES.items()), "task", "path")

    found = checkpointer.get_tuple(config_of(thread_id))
    assert found.checkpoint["channel_values"] == VALUES
    assert found.pending_writes == [("task", channel, value) for channel, value in VALUES.items()]
    assert found.metadata == {"score": 1.5, "tags": ["é"]}
    assert (found.config, found.parent_config) == (config, None)
    [in_list] = checkpointer.list(config_of(thread_id))
    assert in_list == found == checkpointer.get_tuple(config)


def test_many_small_values_may_exceed_the_size_of_an_entry(checkpointer: Any) -> None:
    thread_id = unique()
    values = {f"channel {n}": f"{n}" * 1_000 for n in range(700)}
    put(checkpointer, thread_id, values)
    assert checkpointer.get_tuple(config_of(thread_id)).checkpoint["channel_values"] == values


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_can_be_any_text(checkpointer: Any, name: str) -> None:
    thread_id = unique(name)
    channel = name.replace("\ud83d", "")  # the framework's serializer rejects lone surrogates
    config = put(checkpointer, thread_id, {channel: "value"}, ns=name)
    assert checkpointer.get_tuple(config).checkpoint["channel_values"] == {channel: "value"}
    checkpointer.put_writes(config, [(name, 1)], name, name)
    [found] = checkpointer.list(config_of(thread_id, name))
    assert found.config == config
    assert found.pending_writes == [(name, name, 1)]
    checkpointer.delete_thread(thread_id)
    assert checkpointer.get_tuple(config) is None


def test_similar_names_are_different_threads(saver: ThreadkeepSaver) -> None:
    names = [unique("a"), unique("a"), *NAMES]
    for name in names:
        saver.delete_thread(name)
        put(saver, name, {"name": name[-20:]})
    for name in names:
        found = saver.get_tuple(config_of(name))
        assert found and found.config["configurable"]["thread_id"] == name
        saver.delete_thread(name)


def test_writes_have_the_order_of_a_super_step(checkpointer: Any) -> None:
    config = put(checkpointer, unique(), {})
    for task_id, path in [("a", "2"), ("c", "1"), ("b", "1"), ("z", "")]:
        checkpointer.put_writes(config, [(f"{task_id}0", 0), (f"{task_id}1", 1)], task_id, path)
    checkpointer.put_writes(config, [(ERROR, "e"), (RESUME, "r")], "c", "1")
    order = [channel for _, channel, _ in writes_of(checkpointer, config)]
    assert order == ["z0", "z1", "b0", "b1", RESUME, ERROR, "c0", "c1", "a0", "a1"]


def test_the_first_write_of_an_index_and_the_last_special_write_win(checkpointer: Any) -> None:
    config = put(checkpointer, unique(), {})
    special = (ERROR, SCHEDULED, INTERRUPT, RESUME)
    checkpointer.put_writes(config, [("a", 1), *((name, 1) for name in special)], "task")
    checkpointer.put_writes(config, [("a", 2), *((name, 2) for name in special)], "task")
    checkpointer.put_writes(config, [("x", 3), ("b", 3)], "task")
    found = {channel: value for _, channel, value in writes_of(checkpointer, config)}
    assert found == {"a": 1, "b": 3, **dict.fromkeys(special, 2)}


def test_writes_may_precede_their_checkpoint(saver: ThreadkeepSaver) -> None:
    thread_id, checkpoint = unique(), checkpoint_of({})
    saver.put_writes(config_of(thread_id, "", checkpoint["id"]), [("a", 1)], "task")
    assert saver.get_tuple(config_of(thread_id)) is None
    saver.put(config_of(thread_id), checkpoint, {}, {})
    assert writes_of(saver, config_of(thread_id)) == [("task", "a", 1)]


def test_concurrent_attempts_at_one_task_are_merged(saver: ThreadkeepSaver) -> None:
    config = put(saver, unique(), {})
    threads = [
        threading.Thread(target=saver.put_writes, args=(config, [("own", n)] * (n + 1), "task")) for n in range(8)
    ]
    run_all(threads)
    assert [channel for _, channel, _ in writes_of(saver, config)] == ["own"] * 8


def test_parallel_tasks_lose_no_writes(saver: ThreadkeepSaver, adapt: Adapt) -> None:
    thread_id, graph = unique(), adapt(parallel(saver, 12))
    expected = [f"n{n}" for n in range(12)]
    for turn in range(1, 4):
        answer = graph.invoke({"log": []}, config_of(thread_id))
        assert sorted(answer["log"]) == sorted((*expected, "last") * turn)
    assert graph.get_state(config_of(thread_id)).values == answer
    tasks = [{task for task, _, _ in found.pending_writes or ()} for found in saver.list(config_of(thread_id))]
    assert [len(of_step) for of_step in tasks].count(12) == 3


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_graph_behaves_as_with_the_in_memory_saver(saver: ThreadkeepSaver, adapt: Adapt, durability: str) -> None:
    thread_id = unique()
    histories = []
    for checkpointer in (saver, InMemorySaver()):
        graph = adapt(parallel(checkpointer, 3))
        for _ in range(2):
            graph.invoke({"log": ["in"]}, config_of(thread_id), durability=durability)
        graph.update_state(config_of(thread_id), {"log": ["update"]}, "last")
        found = checkpointer.list(config_of(thread_id))
        histories.append(
            [
                (
                    saved.checkpoint["channel_values"],
                    saved.metadata,
                    [write[1:] for write in saved.pending_writes or ()],
                    saved.parent_config is None,
                )
                for saved in found
            ]
        )
    assert histories[0] == histories[1]


def test_an_interrupted_graph_continues_with_another_saver(settings: dict[str, str], adapt: Adapt) -> None:
    thread_id, memory = unique(), InMemorySaver()

    def run(open_saver: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        for step in ({"log": []}, Command(resume="a"), Command(resume="b")):
            with open_saver() as saver:
                graph = adapt(waiting(saver))
                answer = graph.invoke(step, config_of(thread_id))
                found += [[waits.value for waits in answer.get("__interrupt__", ())], answer["log"]]
                state = graph.get_state(config_of(thread_id), subgraphs=True)
                found += [state.values, state.next, [task.state and task.state.values for task in state.tasks]]
        return found

    assert run(lambda: ThreadkeepSaver(**settings)) == run(lambda: memory)


def test_delta_channels_are_rebuilt(saver: ThreadkeepSaver, adapt: Adapt) -> None:
    thread_id = unique()
    ours, expected = adapt(delta(saver)), delta(InMemorySaver())
    for turn in range(7):
        steps = {"steps": [f"turn {turn}"]}
        assert ours.invoke(steps, config_of(thread_id)) == expected.invoke(steps, config_of(thread_id))
        assert ours.get_state(config_of(thread_id)).values == expected.get_state(config_of(thread_id)).values


@pytest.mark.parametrize("turns", range(1, 8))
def test_a_pruned_thread_still_has_its_delta_channels(saver: ThreadkeepSaver, adapt: Adapt, turns: int) -> None:
    thread_id = unique()
    graph = adapt(delta(saver))
    for turn in range(turns):
        graph.invoke({"steps": [f"turn {turn}"]}, config_of(thread_id))
    before = graph.get_state(config_of(thread_id)).values
    saved = listed(saver, config_of(thread_id))
    adapt(saver).prune([thread_id])

    assert graph.get_state(config_of(thread_id)).values == before
    assert len(before["steps"]) == 5 * turns
    remaining = listed(saver, config_of(thread_id))
    assert remaining == saved[: len(remaining)]
    if turns > 4:
        assert len(remaining) < len(saved)
    graph.invoke({"steps": ["after"]}, config_of(thread_id))
    assert graph.get_state(config_of(thread_id)).values["steps"][: 5 * turns + 1] == [*before["steps"], "after"]


def test_pruning_keeps_values_that_the_latest_checkpoint_needs(checkpointer: Any, server: Server) -> None:
    thread_id = unique()
    large = {"kept": b"k" * 10_000, "changed": b"1" * 10_000}
    first = put(checkpointer, thread_id, large)
    checkpointer.put_writes(first, [("a", b"w" * 1_000_000)], "task")
    second = checkpoint_of({**large, "changed": b"2" * 10_000}, "new")
    second["channel_versions"]["kept"] = checkpointer.get_tuple(first).checkpoint["channel_versions"]["kept"]
    config = checkpointer.put(first, second, {}, {"changed": "new"})
    checkpointer.put_writes(config, [("b", b"w" * 1_000_000)], "task")
    put(checkpointer, thread_id, {"a": 1}, ns="child")

    checkpointer.prune([thread_id])

    found = checkpointer.get_tuple(config_of(thread_id))
    assert found.checkpoint["channel_values"] == second["channel_values"]
    assert found.pending_writes == [("task", "b", b"w" * 1_000_000)]
    assert len(listed(checkpointer, config_of(thread_id))) == 1
    assert len(listed(checkpointer, config_of(thread_id, "child"))) == 1
    kinds = [key[0] for key in entries_of(server, thread_id)]
    assert [kinds.count(kind) for kind in "cbwv"] == [2, 2, 1, 2]


def test_a_deleted_thread_leaves_no_entries(checkpointer: Any, server: Server) -> None:
    thread_id, other, run_id = unique(), unique(), unique()
    for name in (thread_id, other):
        config = put(checkpointer, name, {"large": b"l" * 5_000}, run_id=run_id)
        checkpointer.put_writes(config, [("a", b"w" * 1_000_000)], "task")
    checkpointer.delete_thread(thread_id)

    assert entries_of(server, thread_id) == []
    with Threadkeep(server.url, api_key=API_KEY) as client:
        runs = client.kv(namespace_name("langgraph", "runs", ""))
        assert [entry.body.decode() for entry in runs.entries() if entry.body.decode() in (thread_id, other)] == [other]
    checkpointer.delete_for_runs([run_id])
    assert entries_of(server, other) == []


def test_a_deleted_thread_can_be_used_immediately(saver: ThreadkeepSaver) -> None:
    thread_id = unique()
    for turn in range(3):
        put(saver, thread_id, {"turn": turn, "large": f"{turn}" * 5_000})
        found = saver.get_tuple(config_of(thread_id))
        assert found and found.checkpoint["channel_values"]["turn"] == turn
        saver.delete_thread(thread_id)


def test_deleting_a_run_keeps_values_of_other_runs(checkpointer: Any, server: Server) -> None:
    thread_id, run_id = unique(), unique()
    first = put(checkpointer, thread_id, {"large": b"l" * 5_000, "own": b"o" * 5_000}, run_id=run_id)
    second = checkpoint_of({"large": b"l" * 5_000}, next(versions))
    second["channel_versions"] = checkpointer.get_tuple(first).checkpoint["channel_versions"]
    config = checkpointer.put(first, second, {}, {})
    checkpointer.delete_for_runs([run_id])

    found = checkpointer.get_tuple(config)
    assert found.checkpoint["channel_values"] == {"large": b"l" * 5_000}
    assert checkpointer.get_tuple(first) is None
    assert len(entries_of(server, thread_id)) == 2


def test_a_copy_is_independent(checkpointer: Any, server: Server) -> None:
    source, target = unique(), unique("copy")
    values = {"large": b"l" * 1_000_000, "small": 1}
    first = put(checkpointer, source, values, run_id=source)
    last = put(checkpointer, source, values, first)
    checkpointer.put_writes(last, [("a", b"w" * 1_000_000)], "task", "path")
    expected = [found._replace(config=None, parent_config=None) for found in checkpointer.list(config_of(source))]
    checkpointer.copy_thread(source, target)
    checkpointer.delete_thread(source)

    found = list(checkpointer.list(config_of(target)))
    assert [saved._replace(config=None, parent_config=None) for saved in found] == expected
    assert found[0].config["configurable"]["thread_id"] == target
    assert found[0].parent_config == found[1].config
    checkpointer.delete_for_runs([source])
    assert listed(checkpointer, config_of(target)) == ids([last])
    with pytest.raises(ValueError):
        checkpointer.copy_thread(target, target)


def test_lists_of_namespaces_and_threads_are_newest_first(settings: dict[str, str], adapt: Adapt) -> None:
    with ThreadkeepSaver(**settings, prefix=f"p{next(versions)}.{unique()[:10]}") as saver:
        checkpointer = adapt(saver)
        configs = []
        for n in range(120):
            configs.append(put(checkpointer, f"thread {n % 3}", {}, ns="child" if n % 2 else "", n=n, even=n % 2 == 0))
        newest_first = ids(configs)[::-1]
        assert listed(checkpointer, None) == newest_first
        in_thread = [config for config in configs if config["configurable"]["thread_id"] == "thread 1"]
        no_namespace = {"configurable": {"thread_id": "thread 1"}}
        assert listed(checkpointer, no_namespace) == ids(in_thread)[::-1]
        in_child = [config for config in in_thread if config["configurable"]["checkpoint_ns"] == "child"]
        assert listed(checkpointer, config_of("thread 1", "child")) == ids(in_child)[::-1]
        assert listed(checkpointer, config_of("thread 1", "child"), limit=3) == ids(in_child)[::-1][:3]
        assert listed(checkpointer, None, before=configs[60], limit=2) == ids([configs[59], configs[58]])
        assert listed(checkpointer, None, filter={"even": True}, limit=55) == ids(configs[::2])[::-1][:55]
        assert listed(checkpointer, None, filter={"even": True, "n": 3}) == []
        assert listed(checkpointer, None, limit=0) == []
        assert listed(checkpointer, in_child[0]) == ids(in_child[:1])
        assert listed(checkpointer, config_of("thread 1", "", in_child[0]["configurable"]["checkpoint_id"])) == []
        checkpointer.prune([f"thread {n}" for n in range(3)], strategy="delete")
        assert listed(checkpointer, None) == []


def test_a_list_of_all_threads_excludes_the_store_and_the_cache(settings: dict[str, str], adapt: Adapt) -> None:
    prefix = unique()[:20]
    with (
        ThreadkeepSaver(**settings, prefix=prefix) as saver,
        ThreadkeepStore(**settings, prefix=prefix) as store,
        ThreadkeepCache(**settings, prefix=prefix) as cache,
    ):
        store.put(("c", "0"), "key", {})
        cache.set({(("c",), "key"): (1, None)})
        config = put(saver, "thread", {}, run_id="r")
        assert listed(adapt(saver), None) == ids([config])


def test_an_unknown_strategy_is_rejected(saver: ThreadkeepSaver) -> None:
    with pytest.raises(ValueError, match="keep_latest, delete"):
        saver.prune([], strategy="keep_two")


def test_a_checkpoint_is_visible_only_when_it_is_complete(settings: dict[str, str], proxy: Proxy) -> None:
    thread_id = unique()
    with ThreadkeepSaver(**{**settings, "base_url": proxy.url}) as saver:
        first = put(saver, thread_id, {"large": b"1" * 2_000_000})
        refused = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
        for part in (b"/b%2F", b"/c%2F"):
            proxy.fault = lambda request, part=part: refused if request.startswith(b"PUT") and part in request else None
            with pytest.raises(ThreadkeepError):
                put(saver, thread_id, {"large": b"2" * 2_000_000}, first)
            proxy.fault = lambda request: None
            found = saver.get_tuple(config_of(thread_id))
            assert found and found.config == first
            assert found.checkpoint["channel_values"] == {"large": b"1" * 2_000_000}


def test_an_unchanged_large_value_is_neither_sent_nor_serialized_again(settings: dict[str, str], proxy: Proxy) -> None:
    thread_id, value = unique(), "v" * 100_000
    with ThreadkeepSaver(**{**settings, "base_url": proxy.url}) as saver:
        first = put(saver, thread_id, {"large": value})
    with ThreadkeepSaver(**{**settings, "base_url": proxy.url}) as saver:
        found = saver.get_tuple(first)
        assert found
        proxy.requests.clear()
        next_one = {**checkpoint_of({"large": object()}), "channel_versions": found.checkpoint["channel_versions"]}
        config = saver.put(first, next_one, {}, {})  # type: ignore[arg-type]
        assert sum(map(len, proxy.requests)) < 5_000
        assert (saver.get_tuple(config) or found).checkpoint["channel_values"] == {"large": value}


def test_a_large_value_of_an_older_version_is_stored_if_it_is_unknown(saver: ThreadkeepSaver) -> None:
    checkpoint = checkpoint_of({"large": "v" * 100_000})
    config = saver.put(config_of(unique()), checkpoint, {}, {})
    found = saver.get_tuple(config)
    assert found and found.checkpoint["channel_values"] == checkpoint["channel_values"]


def test_a_list_omits_a_concurrently_deleted_checkpoint(
    settings: dict[str, str], saver: ThreadkeepSaver, proxy: Proxy, adapt: Adapt
) -> None:
    thread_id, doomed = unique(), [unique()]
    values = {f"channel {n}": f"{n}" * 1_000 for n in range(700)}  # more values than fit into one entry
    kept = put(saver, thread_id, values)
    put(saver, thread_id, values, kept, run_id=doomed[0])

    def delete_before_the_parts_are_read(request: bytes) -> None:
        if b"v/c/" in request and doomed:
            saver.delete_for_runs([doomed.pop()])

    proxy.fault = delete_before_the_parts_are_read
    with ThreadkeepSaver(**{**settings, "base_url": proxy.url}) as reader:
        assert listed(adapt(reader), config_of(thread_id)) == ids([kept])
    assert not doomed


def test_missing_values_raise_an_error(saver: ThreadkeepSaver, server: Server) -> None:
    thread_id = unique()
    config = put(saver, thread_id, {"large": "v" * 100_000})
    with Threadkeep(server.url, api_key=API_KEY) as client:
        entries = client.kv(namespace_name("langgraph", thread_id))
        for info in list(entries.keys("b/")):
            entries.delete(info.key)
    with pytest.raises(ThreadkeepError, match="missing values"):
        saver.get_tuple(config)


def test_a_saver_survives_lost_responses(settings: dict[str, str], proxy: Proxy, adapt: Adapt) -> None:
    thread_id = unique()
    with ThreadkeepSaver(**{**settings, "base_url": proxy.url}) as saver:
        checkpointer = adapt(saver)
        proxy.cut_every(3)
        config = None
        for n in range(6):
            config = put(checkpointer, thread_id, {"n": n, "large": f"{n}" * 5_000}, config, run_id="r")
            for task in "ab":
                checkpointer.put_writes(config, [("a", n), (ERROR, "first")], task)
                checkpointer.put_writes(config, [(ERROR, "second")], task)
        found = list(checkpointer.list(config_of(thread_id)))
        assert [saved.checkpoint["channel_values"]["n"] for saved in found] == [5, 4, 3, 2, 1, 0]
        for saved, n in zip(found, range(5, -1, -1), strict=True):
            assert saved.pending_writes == [(task, *write) for task in "ab" for write in [(ERROR, "second"), ("a", n)]]
        checkpointer.prune([thread_id])
        assert listed(checkpointer, config_of(thread_id)) == ids([config])


def test_an_unreachable_server_raises_a_transport_error(settings: dict[str, str]) -> None:
    client = Threadkeep("http://127.0.0.1:9", api_key=API_KEY, max_retries=0)
    with ThreadkeepSaver(client=client) as saver, pytest.raises(TransportError):
        put(saver, unique(), {})


def test_two_processes_lose_nothing(saver: ThreadkeepSaver, server: Server, proxy: Proxy) -> None:
    thread_id = unique()
    config = put(saver, thread_id, {})
    id = config["configurable"]["checkpoint_id"]
    processes = [start(GRAPHS, "write", thread_id, id, name, url=server.url) for name in "pq"]
    assert [process.wait(120) for process in processes] == [0, 0]

    writes = writes_of(saver, config)
    own = sorted(value for _, channel, value in writes if channel == "own")
    assert own == sorted(f"{name}{n}" for name in "pq" for n in range(WRITES))
    assert len([value for _, channel, value in writes if channel == "shared" and value in "pq"]) == WRITES
    for name in "pq":
        assert len(listed(saver, config_of(f"{thread_id} {name}"))) == WRITES


def test_a_process_killed_in_a_step_leaves_completed_tasks(
    saver: ThreadkeepSaver, server: Server, adapt: Adapt
) -> None:
    thread_id = unique()
    process = start(GRAPHS, "hang", thread_id, url=server.url)
    assert process.stdout and process.stdout.readline() == "slow\n"

    def quick_is_saved() -> bool:
        latest = saver.get_tuple(config_of(thread_id))
        return latest is not None and latest.metadata["step"] == 0 and bool(latest.pending_writes)

    wait_until(quick_is_saved)
    process.kill()
    process.communicate()

    graph = adapt(two_tasks(saver, is_first=False))
    assert graph.get_state(config_of(thread_id)).next == ("slow",)
    answer = graph.invoke(None, config_of(thread_id))
    assert answer["log"] == ["quick of the first process", "slow"]


def test_blocking_and_async_methods_share_data(saver: ThreadkeepSaver) -> None:
    thread_id = unique()
    config = put(saver, thread_id, {"large": "l" * 5_000})
    asyncio.run(saver.aput_writes(config, [("a", 1)], "task"))
    assert asyncio.run(saver.aget_tuple(config)) == saver.get_tuple(config)


def test_one_saver_serves_several_event_loops_and_threads(saver: ThreadkeepSaver) -> None:
    thread_id, graph = unique(), parallel(saver, 3)

    async def run(name: str) -> None:
        await asyncio.gather(*(graph.ainvoke({"log": []}, config_of(f"{thread_id} {name} {n}")) for n in range(4)))

    for _ in range(2):
        asyncio.run(run("sequence"))
    threads = [threading.Thread(target=lambda name=name: asyncio.run(run(name))) for name in "abc"]
    threads += [threading.Thread(target=graph.invoke, args=({"log": []}, config_of(f"{thread_id} sync")))]
    run_all(threads)
    for name, turns in [("sequence", 2), ("a", 1), ("b", 1), ("c", 1)]:
        for n in range(4):
            assert len(graph.get_state(config_of(f"{thread_id} {name} {n}")).values["log"]) == 4 * turns
    assert len(graph.get_state(config_of(f"{thread_id} sync")).values["log"]) == 4


def test_a_thread_with_a_ttl_expires_as_a_unit(settings: dict[str, str], server: Server, adapt: Adapt) -> None:
    thread_id, copied = unique(), unique("copy")
    with ThreadkeepSaver(**settings, ttl_seconds=86_400) as saver:
        checkpointer = adapt(saver)
        first = put(checkpointer, thread_id, {"large": "l" * 5_000})
        put(checkpointer, thread_id, {}, first)
        checkpointer.copy_thread(thread_id, copied)
    with Threadkeep(server.url, api_key=API_KEY) as client:
        names = [namespace_name("langgraph", id) for id in (thread_id, copied)]
        found = {info.namespace: info.idle_ttl_seconds for info in client.namespaces()}
        assert [found[name] for name in names] == [86_400, 86_400]
        assert all(entry.expires_at is None for name in names for entry in client.kv(name).entries())


def test_an_encrypting_serializer_hides_values_metadata_and_writes(settings: dict[str, str], server: Server) -> None:
    class Inverting:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "inverting", bytes(255 - byte for byte in plaintext)

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return bytes(255 - byte for byte in ciphertext)

    thread_id = unique()
    with ThreadkeepSaver(**settings, serde=EncryptedSerializer(Inverting())) as saver:
        config = put(saver, thread_id, {"small": "secret", "large": "secret" * 1_000}, note="secret")
        saver.put_writes(config, [("a", "secret")], "task")
        found = saver.get_tuple(config)
        assert found and found.checkpoint["channel_values"]["small"] == found.metadata["note"] == "secret"  # type: ignore[typeddict-item]
    with Threadkeep(server.url, api_key=API_KEY) as client:
        bodies = [entry.body for entry in client.kv(namespace_name("langgraph", thread_id)).entries()]
    assert len(bodies) == 3
    assert not [body for body in bodies if b"secret" in body]


def test_versions_increase(saver: ThreadkeepSaver) -> None:
    version = None
    for n in range(1, 12):
        following = saver.get_next_version(version, None)
        assert version is None or following > version
        assert int(following.partition(".")[0]) == n
        version = following


async def test_closing_leaves_the_callers_client_open(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        async with ThreadkeepSaver(client=client) as saver:
            config = await saver.aput(config_of(unique()), checkpoint_of({}), {}, {})
            assert (await asyncio.to_thread(saver.get_tuple, config) or config) != config
        await saver.aclose()
        saver.close()
        assert (await client.api_key()).name == "ops"


def test_a_blocking_client_serves_async_callers(server: Server) -> None:
    with Threadkeep(server.url, api_key=API_KEY) as client:
        with ThreadkeepSaver(client=client) as saver:
            config = put(saver, unique(), {"a": 1})
            assert asyncio.run(saver.aget_tuple(config)) == saver.get_tuple(config)
        assert client.api_key().name == "ops"


def test_a_prefix_is_checked() -> None:
    with pytest.raises(ValueError, match="prefix"):
        ThreadkeepSaver(prefix="x" * 21)


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[langgraph]"' in error_without("langgraph", "threadkeep.langgraph")


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("langgraph_approval.py", server).splitlines() == [
        "May I pay 20?",
        "Approved: ['pay 20']",
        "3 checkpoints",
    ]
