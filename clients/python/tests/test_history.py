from __future__ import annotations

import pytest

from threadkeep import IdempotencyKeyReused, Threadkeep


def test_items_have_ids_and_sequence_numbers(tk: Threadkeep) -> None:
    history = tk.threads.create().history
    first = history.append({"role": "user"}, id="turn-1")
    assert (first.id, first.seq, first.repeated) == ("turn-1", 1, False)
    assert history.append({"role": "user"}, id="turn-1").repeated
    with pytest.raises(IdempotencyKeyReused):
        history.append({"role": "assistant"}, id="turn-1")
    assert len(history.append("no id").id) >= 32


def test_a_long_history_is_read_page_by_page(tk: Threadkeep) -> None:
    history = tk.threads.create().history
    appended = history.append_many(range(2_500))
    assert [item.seq for item in appended] == list(range(1, 2_501))
    assert [item.value for item in history] == list(range(2_500))
    assert [item.value for item in history.items(after=2_498)] == [2_498, 2_499]
    assert [item.value for item in history.latest(2)] == [2_498, 2_499]
    assert [item.value for item in history.latest(1_500)] == list(range(1_000, 2_500))
    assert history.latest(0) == []


def test_the_latest_items_may_be_larger_than_a_page(tk: Threadkeep) -> None:
    history = tk.threads.create().history
    for letter in "abcd":
        history.append(letter * 900_000)
    assert [item.value[0] for item in history.latest(3)] == ["b", "c", "d"]


def test_items_can_be_taken_and_removed(tk: Threadkeep) -> None:
    history = tk.threads.create().history
    history.append_many("abcd", ids=["1", "2", "3", "4"])
    assert [item.value for item in history.take(2)] == ["c", "d"]
    assert history.take(idempotency_key="k") == history.take(idempotency_key="k")
    assert history.delete("1") is True
    assert history.delete("1") is False
    assert list(history) == []
    assert history.append("e").seq == 5
    assert history.clear() is True
    assert history.clear() is False


def test_a_value_that_is_not_json_appends_nothing(tk: Threadkeep) -> None:
    history = tk.threads.create().history
    for value, error in ((float("nan"), ValueError), (object(), TypeError)):
        with pytest.raises(error):
            history.append_many([*range(1_000), value])
    assert list(history) == []


def test_each_value_needs_one_id(tk: Threadkeep) -> None:
    with pytest.raises(ValueError):
        tk.threads.create().history.append_many(["a", "b"], ids=["1"])
