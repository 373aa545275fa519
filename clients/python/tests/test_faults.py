from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from support.proxy import Proxy, header_of
from support.server import API_KEY, wait_until

from threadkeep import (
    APIError,
    AsyncThreadkeep,
    NotFound,
    RateLimited,
    Thread,
    Threadkeep,
    Timeout,
    TransportError,
    Unavailable,
    ops,
)
from threadkeep._http.message import Request
from threadkeep._transport import Attempts

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
WRITES: dict[str, Callable[[Thread], object]] = {
    "push": lambda thread: thread.push("l", "x"),
    "increment": lambda thread: thread.increment("n"),
    "merge": lambda thread: thread.merge([ops.push("l", 1), ops.append("item")]),
    "append": lambda thread: thread.history.append("x"),
    "append with ids of the server": lambda thread: thread.merge([ops.append("x")]),
    "take": lambda thread: thread.history.take(),
    "fork": lambda thread: thread.fork(),
    "rotate": lambda thread: thread.rotate(),
    "checkpoint": lambda thread: thread.checkpoints.create(),
    "update": lambda thread: thread.configure(metadata={"a": 1}),
    "destroy": lambda thread: thread.destroy(),
    "conditional": lambda thread: thread.set("a", 1, if_match=1),
    "turn": lambda thread: thread.turn().__enter__(),
}


@pytest.fixture
def faulty(connect: object, proxy: Proxy) -> Threadkeep:
    return connect(proxy.url, timeout=60.0)  # type: ignore[operator]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_with_a_lost_response_is_performed_once(
    faulty: Threadkeep, proxy: Proxy, write: Callable[[Thread], object]
) -> None:
    thread = faulty.threads.create()
    thread.history.append("first")
    proxy.requests.clear()
    proxy.fail_once("cut")
    write(thread)

    first, second = proxy.requests[:2]
    assert header_of(first, "idempotency-key") == header_of(second, "idempotency-key")
    assert first == second


def test_retries_duplicate_no_writes(faulty: Threadkeep, proxy: Proxy) -> None:
    thread = faulty.threads.create()
    count = 0

    def cut_every_third(request: bytes) -> str | None:
        nonlocal count
        count += 1
        return "cut" if count % 3 == 0 else None

    proxy.fault = cut_every_third
    for n in range(20):
        thread.push("list", n)
        assert thread.increment("n") == n + 1
        thread.history.append(n)
    assert thread.get("list") == list(range(20))
    assert [item.value for item in thread.history] == list(range(20))


def test_creating_a_thread_is_retried_with_one_key(faulty: Threadkeep, proxy: Proxy) -> None:
    proxy.fail_once("cut")
    owner = f"owner {time.time_ns()}"
    thread = faulty.threads.create(owner=owner)
    assert len(header_of(proxy.requests[0], "idempotency-key") or "") >= 32
    assert [info.id for info in faulty.threads.list(owner)] == [thread.id]


def test_each_call_has_its_own_idempotency_key(faulty: Threadkeep, proxy: Proxy) -> None:
    thread = faulty.threads.create()
    for _ in range(3):
        thread.push("l", 1)
    assert len({header_of(request, "idempotency-key") for request in proxy.requests}) == 4


def test_writes_of_scopes_and_entries_are_retried(faulty: Threadkeep, proxy: Proxy) -> None:
    scope, kv = faulty.scope(f"session:{time.time_ns()}"), faulty.kv(f"n{time.time_ns()}")
    proxy.fail_once("cut")
    assert scope.increment("n") == 1
    proxy.fail_once("cut")
    assert kv.put("k", b"1").version == 1
    proxy.fail_once("cut")
    assert kv.delete("k") is True


def test_a_conditional_put_is_not_retried_if_it_may_have_been_performed(faulty: Threadkeep, proxy: Proxy) -> None:
    kv = faulty.kv(f"n{time.time_ns()}")
    proxy.fail_once("cut")
    with pytest.raises(TransportError):
        kv.put("k", b"1", if_absent=True)
    assert kv.get("k") is not None

    proxy.requests.clear()
    proxy.fail_once(UNAVAILABLE)
    with pytest.raises(Unavailable):
        kv.delete("k", if_match=1)
    assert len(proxy.requests) == 1

    proxy.fail_once("cut")
    assert kv.put("l", b"1", if_absent=True, idempotency_key=f"k{time.time_ns()}").replayed


def test_a_write_survives_a_server_restart(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url, max_retries=20)  # type: ignore[operator]
    thread = client.threads.create()
    proxy.requests.clear()
    failures: list[bytes | str] = ["cut", UNAVAILABLE, UNAVAILABLE, "cut", UNAVAILABLE]
    proxy.fault = lambda request: failures.pop() if failures else None
    thread.push("l", 1)
    assert thread.get("l") == [1]
    assert len({header_of(request, "idempotency-key") for request in proxy.requests[:6]}) == 1


def test_requests_are_retried_for_ten_seconds_or_max_retries_times_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def pauses(max_retries: int | None) -> list[float]:
        nonlocal now
        attempts = Attempts(Request("GET", "/", {}), max_retries)
        waited = []
        with pytest.raises(TransportError):
            while True:
                waited.append(attempts.pause_after_failure(TransportError("refused", sent=False)))
                now += waited[-1]
        return waited

    for waited in (pauses(None) for _ in range(100)):
        for number, pause in enumerate(waited):
            ceiling = min(0.1 * 2**number, 5)
            assert ceiling / 2 <= pause <= ceiling
        assert 10 <= sum(waited) < 15
    assert [len(pauses(number)) for number in (0, 1, 20)] == [0, 1, 20]


def test_reads_are_retried_at_most_max_retries_times(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url, max_retries=2)  # type: ignore[operator]
    thread = client.threads.create(state={"a": 1})
    proxy.requests.clear()
    proxy.fault = lambda request: "cut"
    with pytest.raises(TransportError):
        thread.get("a")
    assert len(proxy.requests) == 3
    proxy.fault = lambda request: UNAVAILABLE
    with pytest.raises(Unavailable) as raised:
        thread.get("a")
    assert raised.value.code == "unknown"
    assert len(proxy.requests) == 6


def test_a_missing_response_is_a_timeout(connect: object, proxy: Proxy) -> None:
    client: Threadkeep = connect(proxy.url, timeout=0.3, max_retries=0)  # type: ignore[operator]
    proxy.fault = lambda request: "hang"

    def seconds() -> float:
        before = time.monotonic()
        with pytest.raises(Timeout):
            client.thread("thrd_" + "3" * 32).read()
        return time.monotonic() - before

    # one fast attempt is enough, because the machine may pause; with the default timeout, every attempt would take 10 s
    assert any(seconds() < 8 for _ in range(5))


def test_an_unreachable_server_raises_a_transport_error(connect: object) -> None:
    client: Threadkeep = connect("http://127.0.0.1:1", max_retries=0)  # type: ignore[operator]
    with pytest.raises(TransportError) as raised:
        client.thread("thrd_" + "3" * 32).push("a", 1)
    assert raised.value.sent is False


def test_a_peer_that_does_not_speak_http_raises_a_transport_error(faulty: Threadkeep, proxy: Proxy) -> None:
    proxy.fault = lambda request: b"SSH-2.0-OpenSSH_9.6\r\n\r\n"
    with pytest.raises(TransportError):
        faulty.thread("thrd_" + "3" * 32).read()


def limited(retry_after: str) -> bytes:
    return f"HTTP/1.1 429 Too Many Requests\r\nretry-after: {retry_after}\r\ncontent-length: 0\r\n\r\n".encode()


def test_the_client_waits_after_429(faulty: Threadkeep, proxy: Proxy) -> None:
    thread = faulty.threads.create()
    proxy.fail_once(limited("1"))
    before = time.monotonic()
    thread.push("l", 1)
    assert time.monotonic() - before >= 1

    proxy.fail_once(limited("31"))
    with pytest.raises(RateLimited) as raised:
        thread.push("l", 1)
    assert raised.value.retry_after == 31


def test_other_errors_are_not_retried(faulty: Threadkeep, proxy: Proxy) -> None:
    with pytest.raises(NotFound):
        faulty.archives.get("thrd_" + "4" * 32)
    assert len(proxy.requests) == 1


def test_a_redirect_is_an_error(faulty: Threadkeep, proxy: Proxy) -> None:
    proxy.fault = lambda request: b"HTTP/1.1 302 Found\r\nlocation: /v1/threads\r\ncontent-length: 2\r\n\r\n{}"
    for call in (lambda: faulty.thread("thrd_" + "3" * 32).read(), lambda: next(iter(faulty.events()))):
        with pytest.raises(APIError) as raised:
            call()
        assert raised.value.status == 302
    assert len(proxy.requests) == 2


async def test_cancelling_a_call_closes_only_its_connection(proxy: Proxy) -> None:
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY) as client:
        thread = await client.threads.create(state={"a": 1})
        proxy.fault = lambda request: "hang" if b"/keys" in request else None
        hanging = asyncio.create_task(thread.keys())
        await asyncio.to_thread(wait_until, lambda: b"/keys" in proxy.requests[-1])
        others = asyncio.gather(*(thread.get("a") for _ in range(10)))
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert await others == [1] * 10
