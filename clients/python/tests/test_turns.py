from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from support.proxy import Proxy
from support.server import API_KEY, wait_until

from threadkeep import AsyncThreadkeep, Conflict, Threadkeep, ThreadkeepError
from threadkeep._http import loop


def test_only_one_caller_holds_the_turn(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with thread.turn() as turn:
        assert thread.turn_state().held
        turn.thread.push("messages", "a")
        with pytest.raises(Conflict) as raised, thread.turn():
            pass
        assert raised.value.code == "turn_taken"
        assert not turn.is_lost
    assert not thread.turn_state().held
    assert "turn" not in repr(turn.thread).lower()


def test_callers_wait_for_the_turn(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url)  # type: ignore[operator]
    thread = client.threads.create()
    with thread.turn():

        def wait() -> None:
            with thread.turn(wait_seconds=30) as turn:
                turn.thread.push("order", "second")

        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_until(lambda: takes(proxy) == 2)
        thread.push("order", "first")
    waiting.join()
    assert thread.get("order") == ["first", "second"]


def test_a_turn_renews_itself(tk: Threadkeep) -> None:
    def attempt(ttl_seconds: int) -> None:
        thread = tk.threads.create()
        with thread.turn(ttl_seconds=ttl_seconds) as turn:
            time.sleep(1.5 * ttl_seconds)
            assert not turn.is_lost
            turn.thread.set("a", 1)
            with pytest.raises(Conflict), thread.turn():
                pass

    with_longer_ttls(attempt)


def test_an_exclusive_turn_rejects_other_writers(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    with thread.turn(exclusive=True) as turn:
        turn.thread.set("a", 1)
        with pytest.raises(Conflict) as raised:
            thread.set("a", 2)
        assert raised.value.code == "turn_taken"
    thread.set("a", 3)


def test_a_lost_turn_cannot_write(connect: object, proxy: Proxy, tk: Threadkeep) -> None:
    cut_off: Threadkeep = connect(proxy.url, timeout=60, max_retries=0)  # type: ignore[operator]
    thread = tk.threads.create()
    with cut_off.thread(thread.id).turn(ttl_seconds=1) as turn:
        proxy.fault = lambda request: b"" if request.startswith(b"PATCH") else None  # blocks renewals
        with thread.turn(wait_seconds=30):
            wait_until(lambda: turn.is_lost)
            proxy.fault = lambda request: None
            with pytest.raises(Conflict) as raised:
                turn.thread.set("a", "late")
            assert raised.value.code == "turn_lost"
    assert thread.read() == {}


def test_an_error_in_the_block_is_not_hidden(connect: object, proxy: Proxy, tk: Threadkeep) -> None:
    faulty: Threadkeep = connect(proxy.url, max_retries=0)  # type: ignore[operator]
    with pytest.raises(ZeroDivisionError), faulty.thread(tk.threads.create().id).turn():
        proxy.fault = lambda request: "cut"
        raise ZeroDivisionError


def test_the_server_learns_whether_the_block_of_a_turn_raised(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url)  # type: ignore[operator]
    thread = client.threads.create()
    with thread.turn():
        pass
    with suppress(ZeroDivisionError), thread.turn():
        raise ZeroDivisionError
    releases = [request.split()[1] for request in proxy.requests if request.startswith(b"DELETE")]
    assert [target.partition(b"/turn")[2] for target in releases] == [b"", b"?messages=return"]


def test_a_turn_is_lost_on_time_while_its_renewal_is_in_flight(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url, timeout=600)  # type: ignore[operator]
    with client.threads.create().turn(ttl_seconds=1) as turn:
        proxy.fault = lambda request: b"" if request.startswith(b"PATCH") else None
        wait_until(lambda: turn.is_lost)


def test_a_reused_turn_context_renews_its_lease(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url)  # type: ignore[operator]

    def attempt(ttl_seconds: int) -> None:
        context = client.threads.create().turn(ttl_seconds=ttl_seconds)
        with context:
            pass
        with context:
            wait_until(lambda: proxy.requests[-1].startswith(b"PATCH"), 2 * ttl_seconds)

    with_longer_ttls(attempt)


def with_longer_ttls(attempt: Callable[[int], None]) -> None:
    """Tries longer and longer TTLs, because a lease expires if the machine pauses for longer than its TTL.

    If the client does not renew the turn, the attempt fails with every TTL.
    """
    for ttl_seconds in (1, 5):
        with suppress(AssertionError, ThreadkeepError, TimeoutError):
            return attempt(ttl_seconds)
    attempt(60)


def takes(proxy: Proxy) -> int:
    return sum(request.startswith(b"POST") and b"/turn HTTP" in request for request in proxy.requests)


async def test_a_cancelled_call_releases_a_turn_that_is_granted_later(proxy: Proxy) -> None:
    cancelled = threading.Event()
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        proxy.fault = lambda request: None if cancelled.wait() else b""  # holds the request back from the server
        taking = asyncio.ensure_future(thread.turn().__aenter__())
        await asyncio.to_thread(wait_until, lambda: takes(proxy))
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        cancelled.set()
        await asyncio.to_thread(wait_until, lambda: proxy.requests[-1].startswith(b"DELETE"))
        async with thread.turn(wait_seconds=30):
            pass


async def test_callers_that_wait_for_a_turn_do_not_use_up_connections(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_CONNECTIONS", 1)
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create()
        second = thread.turn(wait_seconds=30)
        async with thread.turn() as turn:
            waiting = asyncio.ensure_future(second.__aenter__())
            await asyncio.to_thread(wait_until, lambda: takes(proxy) == 2)
            await asyncio.wait_for(turn.thread.set("a", 1), 25)
        await waiting
        await second.__aexit__(None, None, None)
