from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from support.proxy import HEAD_END, Proxy, header_of
from support.server import API_KEY, Server, wait_until

from threadkeep import (
    NOT_DONE,
    AsyncThreadkeep,
    AsyncTurn,
    Conflict,
    Effect,
    EffectFailed,
    EffectInDoubt,
    IdempotencyKeyReused,
    InvalidResponse,
    NotFound,
    Thread,
    Threadkeep,
    TooLarge,
    TransportError,
    Turn,
)

MAILER = Path(__file__).parent / "mailer.py"


class Crash(Exception):
    """Raised where a process would die."""


def crash(effect: Effect) -> Any:
    raise Crash


def fail(effect: Effect) -> Any:
    raise EffectFailed({"reason": "no such address"})


def describe(effect: Effect) -> Any:
    return [effect.key, effect.attempt]


def call(turn: Turn | AsyncTurn, run: Callable[[Effect], Any], **options: Any) -> Any:
    return turn.effect("call_1", "send_mail", {"to": "ada"}, run, **options)


def leave_in_doubt(thread: Thread) -> Effect:
    """Runs the tool in a turn that ends before the result is recorded."""
    effects: list[Effect] = []

    def run(effect: Effect) -> Any:
        effects.append(effect)
        raise Crash

    with pytest.raises(Crash), thread.turn() as turn:
        call(turn, run)
    return effects[0]


def test_turns_are_numbered_and_count_effects_in_doubt(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    assert thread.turn_state().number == 0
    with thread.turn() as turn:
        assert (turn.number, turn.in_doubt) == (1, 0)
    leave_in_doubt(thread)
    with thread.turn() as turn:
        assert (turn.number, turn.in_doubt) == (3, 1)
        assert thread.turn_state().number == 3


def test_a_tool_runs_once_in_all_turns(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    runs = []

    def run(effect: Effect) -> Any:
        runs.append(effect)
        return {"sent": ("ada", 1.0), 7: None}

    for _ in range(2):
        with thread.turn() as turn:
            for arguments in ({"to": "ada", "n": 1}, {"n": 1.0, "to": "ada"}):
                result = turn.effect("call_1", "send_mail", arguments, run)
                assert result == {"sent": ["ada", 1.0], "7": None}
    assert [(effect.id, effect.attempt, effect.turn) for effect in runs] == [("call_1", 1, 1)]
    assert runs[0].fence and runs[0].fence not in repr(runs[0])


def test_a_tool_may_have_no_arguments_and_no_result(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        assert turn.effect("a/b?%", "ping", None, lambda effect: None) is None
        assert turn.effect("a/b?%", "ping", None, crash) is None
        assert turn.thread.effects.get("a/b?%").state == "done"


def test_an_id_belongs_to_one_call(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        turn.effect("call_1", "send_mail", [1], describe)
        for tool, arguments in (("refund", [1]), ("send_mail", [2])):
            with pytest.raises(IdempotencyKeyReused) as raised:
                turn.effect("call_1", tool, arguments, crash)
            assert raised.value.code == "effect_reused"


def test_a_failure_is_recorded_and_can_be_retried(tk: Threadkeep) -> None:
    thread = tk.threads.create()

    def assert_fails(turn: Turn, run: Callable[[Effect], Any], attempt: int, **options: Any) -> None:
        with pytest.raises(EffectFailed) as raised:
            call(turn, run, **options)
        assert (raised.value.error, raised.value.attempt) == ({"reason": "no such address"}, attempt)

    with thread.turn() as turn:
        assert_fails(turn, fail, 1)
        assert_fails(turn, crash, 1)
        assert_fails(turn, fail, 2, retry=True)
    with thread.turn() as turn:
        assert turn.in_doubt == 0
        assert_fails(turn, crash, 2)
        assert call(turn, describe, retry=True)[1] == 3
        assert call(turn, crash, retry=True)[1] == 3


def test_another_exception_leaves_the_effect_in_doubt(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    effect = leave_in_doubt(thread)
    with thread.turn() as turn:
        with pytest.raises(EffectInDoubt) as raised:
            call(turn, crash)
        assert (raised.value.id, raised.value.key, raised.value.attempt) == ("call_1", effect.key, 1)
        assert effect.key not in str(raised.value)


def test_a_check_that_finds_a_result_records_it(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    effect = leave_in_doubt(thread)
    with thread.turn() as turn:
        assert call(turn, crash, check=lambda key: ("found", key)) == ["found", effect.key]
        assert call(turn, crash) == ["found", effect.key]


def test_a_check_may_allow_the_next_attempt(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    effect = leave_in_doubt(thread)
    with thread.turn() as turn:
        assert call(turn, describe, check=lambda key: NOT_DONE) == [effect.key, 2]
    assert repr(NOT_DONE) == "NOT_DONE"


def test_an_idempotent_tool_runs_again_with_its_key(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    effect = leave_in_doubt(thread)
    with thread.turn() as turn:
        assert call(turn, describe, idempotent=True) == [effect.key, 2]


def test_a_call_in_the_turn_in_which_the_tool_raised_does_not_wait(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        with pytest.raises(Crash):
            call(turn, crash)
        with pytest.raises(EffectInDoubt):
            call(turn, describe)
        with pytest.raises(Crash):
            call(turn, crash, check=lambda key: NOT_DONE)
        assert call(turn, crash, check=lambda key: "found") == "found"
        with pytest.raises(Crash):
            turn.effect("call_2", "read", None, crash, idempotent=True)
        assert turn.effect("call_2", "read", None, describe, idempotent=True)[1] == 1


@pytest.mark.parametrize("value", ["x" * 70_000, object(), float("nan")], ids=["too large", "object", "nan"])
def test_a_result_that_cannot_be_recorded_leaves_the_effect_open(tk: Threadkeep, value: object) -> None:
    with tk.threads.create().turn() as turn:
        with pytest.raises((TooLarge, TypeError, ValueError)):
            call(turn, lambda effect: value)
        with pytest.raises(EffectInDoubt):
            call(turn, crash)


def test_arguments_without_a_canonical_form_begin_nothing(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        with pytest.raises(ValueError):
            turn.effect("call_1", "send_mail", float("nan"), crash)
        assert list(turn.thread.effects.list()) == []


def test_a_tool_that_raises_stop_iteration_has_no_result(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        with pytest.raises(RuntimeError):
            call(turn, lambda effect: next(iter(())))
        with pytest.raises(EffectInDoubt):
            call(turn, crash)


def test_a_batch_records_a_result_with_a_fence_after_the_turn(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    effect = leave_in_doubt(thread)
    for repeated in (False, True):
        with thread.batch() as batch:
            batch.set("sent", True)
            batch.settle(effect.id, result="sent", fence=effect.fence)
        assert batch.receipt and batch.receipt.results
        assert batch.receipt.results[1] == {"state": "done", "repeated": repeated}
    with thread.turn() as turn:
        assert (turn.in_doubt, call(turn, crash)) == (0, "sent")


def test_the_holder_of_the_turn_settles_an_effect_in_doubt_in_a_batch(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    leave_in_doubt(thread)
    with thread.turn() as turn:
        with turn.thread.batch() as batch:
            batch.settle("call_1", error=None)
        with pytest.raises(EffectFailed) as raised:
            call(turn, crash)
        assert raised.value.error is None


def test_a_settlement_has_either_a_result_or_an_error(tk: Threadkeep) -> None:
    with pytest.raises(TypeError), tk.threads.create().batch() as batch:
        batch.settle("call_1")
    with pytest.raises(TypeError), tk.threads.create().batch() as batch:
        batch.settle("call_1", result=1, error=2)


def test_a_result_of_an_earlier_attempt_is_rejected(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    first = leave_in_doubt(thread)
    with thread.turn() as turn:
        call(turn, describe, idempotent=True)
    with pytest.raises(Conflict) as raised, thread.batch() as batch:
        batch.settle("call_1", result="late", fence=first.fence)
    assert raised.value.code == "effect_lost"


def test_effects_are_listed_newest_first(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    leave_in_doubt(thread)
    with thread.turn() as turn:
        for n in range(120):
            turn.effect(f"n{n}", "count", n, describe)
    listed = list(thread.effects.list())
    assert [effect.id for effect in listed] == [*(f"n{n}" for n in reversed(range(120))), "call_1"]
    assert all(effect.result is None and effect.fence is None for effect in listed)
    assert [effect.id for effect in thread.effects.list("in_doubt")] == ["call_1"]
    assert len(list(thread.effects.list(state="done"))) == 120


def test_an_effect_is_read_with_its_result(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with thread.turn() as turn:
        key, _ = call(turn, describe)
        with pytest.raises(EffectFailed):
            turn.effect("call_2", "send_mail", None, fail)
    effect = thread.effects.get("call_1")
    assert (effect.state, effect.tool, effect.turn, effect.result) == ("done", "send_mail", 1, [key, 1])
    assert (effect.key, effect.begun_at.tzinfo is None, effect.fence) == (key, False, None)
    assert thread.effects.get("call_2").error == {"reason": "no such address"}
    with pytest.raises(NotFound):
        thread.effects.get("call_3")


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_mail_is_sent_once_although_a_process_dies(tk: Threadkeep, server: Server, tmp_path: Path, dies: str) -> None:
    thread = tk.threads.create()
    process = subprocess.run([sys.executable, str(MAILER), server.url, thread.id, str(tmp_path), dies], timeout=300)
    assert process.returncode == 9

    def send(effect: Effect) -> str:
        (tmp_path / effect.key).touch(exist_ok=False)
        return "sent"

    with thread.turn(wait_seconds=30) as turn:
        assert turn.in_doubt == 1
        result = call(turn, send, check=lambda key: "found" if (tmp_path / key).exists() else NOT_DONE)
    assert result == ("sent" if dies == "before" else "found")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_lost_response_does_not_repeat_the_tool(connect: Any, proxy: Proxy, method: str) -> None:
    thread = connect(proxy.url).threads.create()
    runs = []
    with thread.turn() as turn:
        proxy.requests.clear()
        proxy.fail_once("cut", method)
        assert call(turn, lambda effect: runs.append(effect.attempt)) is None
    sent = [request for request in proxy.requests if request.startswith(method.encode())]
    assert (len(sent), runs) == (2, [1])
    if method == "POST":
        assert len({header_of(request, "idempotency-key") for request in sent}) == 1


def test_a_grant_whose_responses_were_all_lost_is_granted_to_the_next_call(connect: Any, proxy: Proxy) -> None:
    thread = connect(proxy.url, max_retries=0).threads.create()
    with thread.turn() as turn:
        proxy.fail_once("cut", "POST")
        with pytest.raises(TransportError):
            call(turn, crash)
        assert call(turn, describe)[1] == 1


def test_only_the_hash_of_the_arguments_is_sent(connect: Any, proxy: Proxy) -> None:
    thread = connect(proxy.url).threads.create()
    with thread.turn() as turn:
        call(turn, describe)
    request = next(request for request in proxy.requests if b"/effects/call_1" in request)
    assert json.loads(request.partition(HEAD_END)[2]) == {
        "tool": "send_mail",
        "hash": "1d2b11c60fa0363c0d803e42335ea9b6f8be985805e8a20f655cd04e936c0801",
        "idempotent": False,
    }


WITHOUT_FENCE = {"id": "call_1", "state": "granted", "tool": "send_mail", "hash": "h", "attempt": 1} | {
    "idempotency_key": "k",
    "turn": 1,
    "begun_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b"{}", json.dumps(WITHOUT_FENCE).encode()])
def test_an_invalid_grant_does_not_run_the_tool(connect: Any, proxy: Proxy, body: bytes) -> None:
    with connect(proxy.url).threads.create().turn() as turn:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        proxy.fail_once(head.encode() + body, "POST")
        with pytest.raises(InvalidResponse):
            call(turn, crash)


def test_threads_of_a_turn_run_a_tool_once(proxy: Proxy) -> None:
    with Threadkeep(proxy.url, api_key=API_KEY) as client, client.threads.create().turn() as turn:
        runs: list[int] = []
        results: list[Any] = []
        is_begun = threading.Event()

        def run(effect: Effect) -> str:
            runs.append(effect.attempt)
            is_begun.set()
            wait_until(lambda: reads(proxy) >= 1)
            return "sent"

        branches = [threading.Thread(target=lambda: results.append(call(turn, run))) for _ in range(3)]
        branches[0].start()
        is_begun.wait()
        for branch in branches[1:]:
            branch.start()
        for branch in branches:
            branch.join()
    assert (runs, results) == ([1], ["sent"] * 3)


def reads(proxy: Proxy) -> int:
    """Returns how often waiting branches have read the effect."""
    return sum(request.startswith(b"GET") and b"/effects/" in request for request in proxy.requests)


@pytest.fixture
async def turn(proxy: Proxy) -> AsyncIterator[Any]:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, timeout=60, max_retries=0) as client:
        thread = await client.threads.create()
        async with thread.turn(ttl_seconds=30) as turn:
            yield turn


async def test_branches_of_an_async_turn_run_a_tool_once(proxy: Proxy, turn: Any) -> None:
    runs = []

    async def run(effect: Effect) -> str:
        runs.append(effect.attempt)
        await asyncio.to_thread(wait_until, lambda: reads(proxy) >= 2)
        return "sent"

    results = await asyncio.gather(*(call(turn, run) for _ in range(3)))
    assert (runs, results) == ([1], ["sent"] * 3)


async def test_a_check_may_be_a_coroutine_function(turn: Any) -> None:
    async def check(key: str) -> Any:
        return NOT_DONE

    with pytest.raises(Crash):
        await call(turn, crash)
    assert (await call(turn, describe, check=check))[1] == 1


async def test_a_branch_that_waits_takes_over_from_a_branch_that_raises(proxy: Proxy, turn: Any) -> None:
    async def run(effect: Effect) -> Any:
        await asyncio.to_thread(wait_until, lambda: reads(proxy) >= 1)
        raise Crash

    first = asyncio.ensure_future(call(turn, run))
    await asyncio.to_thread(wait_until, lambda: begins(proxy) == 1)
    second = asyncio.ensure_future(call(turn, crash, check=lambda key: "found"))
    with pytest.raises(Crash):
        await first
    assert await second == "found"


def begins(proxy: Proxy) -> int:
    return sum(request.startswith(b"POST") and b"/effects/" in request for request in proxy.requests)


async def test_a_cancelled_tool_leaves_the_effect_open(proxy: Proxy, turn: Any) -> None:
    is_begun = asyncio.Event()

    async def run(effect: Effect) -> Any:
        is_begun.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(call(turn, run))
    await is_begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(EffectInDoubt):
        await call(turn, crash)


async def test_a_branch_stops_waiting_when_the_turn_is_lost_and_a_late_result_counts(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, timeout=600, max_retries=0) as client:
        thread = await client.threads.create()
        released = asyncio.Event()

        async def run(effect: Effect) -> str:
            await released.wait()
            return "late"

        async with thread.turn(ttl_seconds=3) as turn:
            proxy.fault = lambda request: b"" if request.startswith(b"PATCH") else None  # blocks renewals
            first = asyncio.ensure_future(call(turn, run))
            await asyncio.to_thread(wait_until, lambda: begins(proxy) == 1)
            with pytest.raises(Conflict) as raised:
                await call(turn, crash)
            assert raised.value.code in ("turn_not_held", "turn_lost")
            async with thread.turn(wait_seconds=30) as next_turn:
                assert next_turn.in_doubt == 1
                released.set()
                assert await first == "late"
                assert await call(next_turn, crash) == "late"


async def test_a_cancelled_branch_that_waits_does_not_block_later_calls(proxy: Proxy, turn: Any) -> None:
    async def run(effect: Effect) -> Any:
        await asyncio.to_thread(wait_until, lambda: reads(proxy) >= 1)
        raise Crash

    first = asyncio.ensure_future(call(turn, run))
    await asyncio.to_thread(wait_until, lambda: begins(proxy) == 1)
    second = asyncio.ensure_future(call(turn, crash))
    with pytest.raises(Crash):
        await first
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second

    assert await asyncio.wait_for(call(turn, crash, check=lambda key: "found"), 60) == "found"


async def test_a_call_tries_the_keys_of_all_branches_whose_responses_were_lost(proxy: Proxy, turn: Any) -> None:
    is_first_done = threading.Event()

    def wait_for_second() -> str:
        wait_until(lambda: begins(proxy) == 2)
        return "cut"

    def wait_for_first() -> str:
        is_first_done.wait()
        return "cut"

    faults = iter([wait_for_second, wait_for_first])
    proxy.fault = lambda request: next(faults, lambda: None)() if request.startswith(b"POST") else None
    first = asyncio.ensure_future(call(turn, crash))
    await asyncio.to_thread(wait_until, lambda: begins(proxy) == 1)
    second = asyncio.ensure_future(call(turn, crash))
    with pytest.raises(TransportError):
        await first
    is_first_done.set()
    with pytest.raises(TransportError):
        await second

    assert (await asyncio.wait_for(call(turn, describe), 60))[1] == 1


def test_a_rejected_call_leaves_the_attempt_to_the_next_call(tk: Threadkeep) -> None:
    with tk.threads.create().turn() as turn:
        with pytest.raises(Crash):
            call(turn, crash)
        with pytest.raises(IdempotencyKeyReused):
            turn.effect("call_1", "send_mail", "other arguments", crash)
        assert call(turn, crash, check=lambda key: "found") == "found"


@pytest.mark.parametrize("outcome", ["result", "error"])
async def test_an_outcome_is_recorded_although_the_call_is_cancelled(proxy: Proxy, outcome: str) -> None:
    def run(effect: Effect) -> Any:
        running.cancel()
        if outcome == "error":
            raise EffectFailed("rejected")
        return "sent"

    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        async with thread.turn() as turn:
            proxy.fail_once(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", "PUT")
            running = asyncio.ensure_future(call(turn, run))
            with pytest.raises(asyncio.CancelledError):
                await running

            effect = await thread.effects.get("call_1")
    assert (effect.result, effect.error) == (("sent", None) if outcome == "result" else (None, "rejected"))
