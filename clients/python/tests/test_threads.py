from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from support.proxy import Proxy

from threadkeep import Conflict, Destroyed, InvalidRequest, NotFound, Threadkeep, VersionMismatch, ops


def test_a_thread_has_metadata_a_ttl_and_a_state(tk: Threadkeep) -> None:
    before = datetime.now(timezone.utc)
    thread = tk.threads.create(metadata={"topic": "tea"}, ttl_seconds=600, state={"a": 1}, owner="ada")
    info = thread.info()
    assert (info.id, info.version, info.metadata, info.owner) == (thread.id, 1, {"topic": "tea"}, "ada")
    assert info.expires_at and timedelta(seconds=590) < info.expires_at - before

    info = thread.configure(metadata={"topic": None, "lang": "en"}, ttl_seconds=900)
    assert (info.metadata, info.ttl_seconds, info.version) == ({"lang": "en"}, 900, 2)
    assert thread.read() == {"a": 1}


def test_creating_a_thread_twice_is_a_conflict(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with pytest.raises(Conflict) as raised:
        tk.threads.create(id=thread.id)
    assert raised.value.code == "thread_exists"


def test_a_handle_sends_nothing_and_its_thread_need_not_exist(tk: Threadkeep) -> None:
    thread = tk.thread("thrd_" + "1" * 40)
    assert thread.info().exists is False
    assert thread.read() == {}
    assert thread.get("a", "default") == "default"
    assert thread.get("a", tail=3) is None


def test_the_first_write_of_a_handle_sets_its_ttl(tk: Threadkeep) -> None:
    id = tk.threads.create().id[:-4] + "0000"
    thread = tk.thread(id, ttl_seconds=7_200)
    thread.history.append("hello")
    assert thread.info().ttl_seconds == 7_200


def test_every_kind_of_state_write(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    assert thread.set("a", {"b": [1, 2]}).version == 2
    assert thread.push("list", 1).length == 1
    assert thread.push("list", 2).length == 2
    assert thread.push("list", 3, max_records=2).length == 2
    assert thread.get("list", tail=1) == [3]
    assert thread.get("list", offset=1) == [3]
    assert thread.get("list", limit=1) == [2]
    assert thread.increment("n") == 1
    assert thread.increment("n", 9_223_372_036_854_775_806) == 9_223_372_036_854_775_807
    assert thread.keys() == ["a", "list", "n"]
    assert thread.read("a", "list") == {"a": {"b": [1, 2]}, "list": [2, 3]}
    assert thread.delete("n") is True
    assert thread.delete("n") is False
    thread.patch({"a": {"c": 1}, "list": None})
    assert thread.read() == {"a": {"b": [1, 2], "c": 1}}
    thread.replace({"z": None})
    assert thread.read() == {"z": None}
    assert thread.get("z", 1) is None
    thread.clear()
    assert thread.read() == {}


@pytest.mark.parametrize("key", [".", "..", "a/b", "?#%2e", "ü ", "😀"])
def test_any_key_works(tk: Threadkeep, key: str) -> None:
    thread = tk.threads.create()
    thread.set(key, 1)
    assert thread.get(key) == 1
    assert thread.increment(key, 2) == 3
    assert thread.delete(key) is True
    assert thread.push(key, "x").length == 1
    assert thread.push(key, "y", 5).length == 2
    assert thread.get(key, tail=1) == ["y"]
    assert thread.get(key, offset=0, limit=1) == ["x"]


@pytest.mark.parametrize(
    "value",
    [2**80, -0.5, "ü😀", "\ud800", {"": [{}, []]}, "a\u2028\x00b", None, True, {"b": 1, "a": 2}],
)
def test_values_come_back_equal(tk: Threadkeep, value: object) -> None:
    thread = tk.threads.create()
    thread.set("value", value)
    assert thread.get("value") == value


@pytest.mark.parametrize(("value", "error"), [(float("nan"), ValueError), (object(), TypeError), ({1, 2}, TypeError)])
def test_a_value_that_is_not_json_is_not_sent(tk: Threadkeep, value: object, error: type[Exception]) -> None:
    thread = tk.thread("thrd_" + "2" * 32)
    with pytest.raises(error):
        thread.set("value", value)
    assert thread.info().exists is False


def test_text_is_stored_without_escapes(tk: Threadkeep) -> None:
    assert tk.threads.create().set("k", "ü").size_bytes == len('{"k":"ü"}'.encode())


def test_a_merge_is_all_or_nothing(tk: Threadkeep) -> None:
    thread = tk.threads.create(state={"list": [1, 2], "text": "a"})
    receipt = thread.merge([ops.pop("list"), ops.increment("n"), ops.append("item", id="i"), ops.delete("text")])
    assert receipt.results is not None
    assert receipt.results[0] == {"values": [2]}
    assert [item.value for item in thread.history] == ["item"]

    with pytest.raises(Conflict) as raised:
        thread.merge([ops.set("new", 1), ops.push("n", 1)])
    assert (raised.value.code, raised.value.problem["operation"]) == ("not_an_array", 1)
    assert thread.get("new") is None


def test_a_batch_is_one_write(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with thread.batch() as batch:
        batch.set("a", 1)
        batch.push("list", "x")
        batch.increment("n", 5)
        assert thread.read() == {}
    assert batch.receipt is not None
    assert batch.receipt.version == 2
    assert thread.read() == {"a": 1, "list": ["x"], "n": 5}


def test_a_failed_batch_sends_nothing(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with pytest.raises(ZeroDivisionError), thread.batch() as batch:
        batch.set("a", 1)
        raise ZeroDivisionError
    with thread.batch() as empty:
        pass
    assert batch.receipt is None and empty.receipt is None
    assert thread.info().version == 1


def test_a_reused_batch_context_starts_a_new_batch(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    context = thread.batch()
    for _ in range(2):
        with context as batch:
            batch.push("list", "x")
    with context as empty:
        pass
    assert thread.get("list") == ["x", "x"]
    assert empty.receipt is None


def test_conditions_take_tags_and_versions(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    receipt = thread.set("a", 1, if_match=1)
    thread.set("a", 2, if_match=receipt.etag)
    with pytest.raises(VersionMismatch) as raised:
        thread.set("a", 3, if_match=2)
    assert raised.value.current_version == 3
    thread.push("l", 1, if_match="*")
    with pytest.raises(InvalidRequest):
        thread.clear(if_match="nonsense")


def test_an_idempotency_key_makes_retries_safe(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    first = thread.push("l", 1, idempotency_key="once")
    again = thread.push("l", 1, idempotency_key="once")
    assert (first.replayed, again.replayed, again.version) == (False, True, first.version)
    assert thread.get("l") == [1]


def test_a_destroyed_thread_rejects_writes(tk: Threadkeep) -> None:
    thread = tk.threads.create(state={"a": 1})
    thread.destroy()
    assert thread.read() == {}
    with pytest.raises(Destroyed):
        thread.set("a", 2)
    archive = tk.archives.get(thread.id)
    assert (archive.reason, archive.state) == ("destroyed", {"a": 1})


def test_a_destroyed_thread_can_be_restored(tk: Threadkeep) -> None:
    thread = tk.threads.create(state={"a": 1})
    thread.history.append("hello")
    thread.destroy()
    since = datetime.now(timezone.utc) - timedelta(minutes=1)
    assert thread.id in {archive.id for archive in tk.archives.list(since=since)}
    assert [item.value for item in tk.archives.history(thread.id)] == ["hello"]
    assert tk.archives.restore(thread.id).exists
    assert thread.read() == {"a": 1}


def test_a_signed_id_needs_no_api_key(tk: Threadkeep, connect: object, server: object) -> None:
    thread = tk.threads.create(state={"a": 1})
    keyless = connect(server.url, api_key=None)  # type: ignore[operator, attr-defined]
    same = keyless.current(thread.signed_id)
    assert same.get("a") == 1
    assert same.increment("a") == 2
    moved = same.rotate()
    assert moved.get("a") == 2
    assert moved.id != thread.id == same.id
    with pytest.raises(Destroyed):
        same.set("a", 0)
    assert keyless.threads.create().increment("n") == 1


def test_a_fork_is_a_separate_thread(tk: Threadkeep) -> None:
    thread = tk.threads.create(state={"a": 1})
    thread.history.append("hello")
    checkpoint = thread.checkpoints.create("before")
    thread.set("a", 2)
    fork = thread.fork(metadata={"why": "test"}, include=["state", "history"])
    assert fork.read() == {"a": 2}
    assert [item.value for item in fork.history] == ["hello"]
    assert fork.info().metadata["forked_from"]["thread_id"] == thread.id
    assert thread.fork(from_checkpoint=checkpoint.checkpoint).read() == {"a": 1}


def test_checkpoints_restore_states(tk: Threadkeep) -> None:
    thread = tk.threads.create(state={"a": 1})
    first = thread.checkpoints.create("first")
    thread.set("a", 2)
    thread.checkpoints.create()
    assert [(one.checkpoint, one.name) for one in thread.checkpoints.list()] == [(2, None), (1, "first")]
    assert thread.checkpoints.get(1).state == {"a": 1}
    assert thread.checkpoints.restore(first.checkpoint).version == thread.info().version
    assert thread.read() == {"a": 1}
    thread.checkpoints.delete(2)
    with pytest.raises(NotFound):
        thread.checkpoints.get(2)


def test_threads_are_listed_by_owner(tk: Threadkeep) -> None:
    owner = f"owner/{time.time_ns()}"
    ids = [tk.threads.create(owner=owner, metadata={"n": n % 2}).id for n in range(130)]
    assert {thread.id for thread in tk.threads.list(owner)} == set(ids)
    odd = list(tk.threads.list(owner, order="created", metadata={"n": 1}))
    assert {thread.id for thread in odd} == set(ids[1::2])
    assert tk.owners.get(owner).threads == 130
    tk.thread(ids[0]).assign(None)
    assert tk.owners.get(owner).threads == 129
    erasure = tk.owners.erase(owner)
    assert erasure.complete
    assert list(tk.threads.list(owner)) == []
    assert tk.thread(ids[0]).info().exists


def test_documents_transfer_threads(tk: Threadkeep) -> None:
    owner = f"owner/{time.time_ns()}"
    threads = [tk.threads.create(owner=owner, state={"n": n}) for n in range(3)]
    threads[0].history.append("hello")
    documents = list(tk.threads.export_all(owner))
    assert len(documents) == 3
    assert threads[0].export() in documents
    with pytest.raises(Conflict):
        tk.threads.import_document(documents[0])
    threads[0].set("n", 100)
    for document in documents:
        assert tk.threads.import_document(document, if_exists="replace").owner == owner
    assert sorted(thread.get("n") for thread in threads) == [0, 1, 2]
    assert [item.value for item in threads[0].history] == ["hello"]
    tk.owners.erase(owner)


def test_none_is_rejected_as_a_name(connect: Any, proxy: Proxy) -> None:
    """An argument None must raise an error, because ignoring it would select a different thread or all owners."""
    tk = connect(proxy.url)
    thread = tk.thread("thrd_" + "7" * 32)
    calls: list[Callable[[], object]] = [
        lambda: tk.threads.create(id=None),
        lambda: tk.threads.create(owner=None),
        lambda: list(tk.threads.list(None)),
        lambda: list(tk.threads.list(owner=None)),
        lambda: list(tk.threads.export_all(None)),
        lambda: thread.fork(id=None),
        lambda: thread.fork(owner=None),
        lambda: thread.fork(from_checkpoint=None),
        lambda: tk.archives.get(thread.id, life=None),
        lambda: list(tk.archives.history(thread.id, life=None)),
        lambda: tk.archives.restore(thread.id, life=None),
        lambda: tk.thread(None),
        lambda: tk.current(None),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert proxy.requests == []
