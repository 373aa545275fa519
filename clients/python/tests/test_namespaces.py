from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from threadkeep import EntryPut, Namespace, Threadkeep, VersionMismatch


@pytest.fixture
def kv(tk: Threadkeep) -> Iterator[Namespace]:
    namespace = tk.kv(f"test/{time.time_ns()}")
    yield namespace
    namespace.clear()


def test_entries_are_bytes_with_a_type(kv: Namespace) -> None:
    receipt = kv.put("a/b c", b"\x00\xff", content_type="image/png", ttl_seconds=300)
    entry = kv.get("a/b c")
    assert entry is not None
    assert (entry.key, entry.body, entry.content_type) == ("a/b c", b"\x00\xff", "image/png")
    assert entry.etag == receipt.etag
    assert entry.expires_at is not None and entry.expires_at.tzinfo
    assert kv.get("absent") is None
    assert kv.delete("a/b c") is True
    assert kv.delete("a/b c") is False


def test_conditional_writes(kv: Namespace) -> None:
    first = kv.put("k", b"1", if_absent=True)
    with pytest.raises(VersionMismatch):
        kv.put("k", b"2", if_absent=True)
    second = kv.put("k", b"2", if_match=first.etag)
    with pytest.raises(VersionMismatch):
        kv.delete("k", if_match=first.etag)
    assert kv.delete("k", if_match=second.version)


def test_many_entries_are_put_and_read(kv: Namespace, tk: Threadkeep) -> None:
    outcomes = kv.put_many([EntryPut(f"k{n:03}", b"%d" % n) for n in range(250)])
    assert all(outcome.ok for outcome in outcomes)
    assert len(kv.get_many([f"k{n:03}" for n in range(300)])) == 250
    assert [entry.key for entry in kv.keys("k01")] == [f"k01{n}" for n in range(10)]
    assert [entry.body for entry in kv.entries("k00", order="desc")] == [b"%d" % n for n in range(9, -1, -1)]
    assert kv.put_many([EntryPut("k000", "new", if_absent=True)])[0].code == "version_mismatch"
    assert repr(kv).endswith("')")
    assert any(f"Namespace('{one.namespace}')" in repr(kv) for one in tk.namespaces())


def test_an_entry_that_is_not_json_stores_nothing(kv: Namespace) -> None:
    entries = [EntryPut(str(n), b"") for n in range(101)]
    entries[100] = EntryPut("last", b"", ttl_seconds=float("nan"))  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        kv.put_many(entries)
    assert list(kv.keys()) == []


def test_large_entries_are_read_completely(kv: Namespace) -> None:
    body = b"x" * 900_000
    for key in "abc":
        kv.put(key, body)
    assert {key: entry.body for key, entry in kv.get_many("abc").items()} == dict.fromkeys("abc", body)
    assert [entry.body for entry in kv.entries()] == [body] * 3


def test_a_namespace_has_settings(kv: Namespace) -> None:
    kv.put("k", b"")
    info = kv.configure(idle_ttl_seconds=3_600)
    assert (info.entries, info.idle_ttl_seconds) == (1, 3_600)
    assert kv.clear() == 1


def test_a_name_that_urls_cannot_contain_is_rejected(kv: Namespace) -> None:
    with pytest.raises(ValueError):
        kv.put("..", b"")


def test_a_list_ends_at_its_limit(tk: Threadkeep) -> None:
    kv = tk.kv(f"n{time.time_ns()}")
    kv.put_many([EntryPut(f"{n:04}", str(n)) for n in range(1_010)])
    for limit in (0, 1, 1_000, 1_005):
        assert [info.key for info in kv.keys(limit=limit)] == [f"{n:04}" for n in range(limit)]
    assert [entry.body for entry in kv.entries(limit=3, order="desc")] == [b"1009", b"1008", b"1007"]
    assert len(list(kv.entries(limit=2_000))) == len(list(kv.keys())) == 1_010
