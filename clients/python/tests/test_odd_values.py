"""Tests that values that need special parsing, such as huge numbers, do not break lists, streams or other values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
from support.proxy import Proxy
from support.server import API_KEY, Server, wait_until
from test_events import Listener, write_until_received

from threadkeep import InvalidResponse, Thread, Threadkeep

DIGITS = "7" * 5_000
"""More digits than Python converts to an integer."""
NUMBER, MINUS = Decimal(DIGITS), Decimal(f"-{DIGITS}")

Send = Callable[[Thread, str, str, str], None]


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.fixture
def send(server: Server) -> Iterator[Send]:
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {API_KEY}"}) as client:

        def send(thread: Thread, method: str, path: str, body: str) -> None:
            headers = {"content-type": "application/json"}
            client.request(method, f"/v1/threads/{thread.id}{path}", content=body, headers=headers).raise_for_status()

        yield send


@pytest.fixture
def odd(tk: Threadkeep, send: Send) -> Thread:
    """Creates a thread with a huge number in its metadata, state and history."""
    thread = tk.threads.create(owner="of odd values", state={"a": 1, "z": 2})
    send(thread, "PATCH", "", f'{{"metadata":{{"n":{DIGITS},"name":"odd"}}}}')
    send(thread, "PUT", "/state/n", DIGITS)
    send(thread, "PUT", "/state/list", f"[1,-{DIGITS},3]")
    thread.history.append("first")
    send(thread, "POST", "/history", f'{{"items":[{{"id":"odd","value":{{"n":{DIGITS}}}}}]}}')
    thread.history.append("last")
    return thread


def test_a_list_has_threads_with_odd_values(tk: Threadkeep, odd: Thread) -> None:
    other = tk.threads.create(owner="of odd values")
    found = {info.id: info.metadata for info in tk.threads.list("of odd values")}
    assert found[odd.id] == {"n": NUMBER, "name": "odd"}
    assert found[other.id] == {}
    assert {odd.id, other.id} <= {info.id for info in tk.threads.list()}


READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "info": (lambda thread: thread.info().metadata, {"n": NUMBER, "name": "odd"}),
    "state": (lambda thread: thread.read("n", "a"), {"n": NUMBER, "a": 1}),
    "get": (lambda thread: thread.get("n"), NUMBER),
    "get another": (lambda thread: thread.get("z"), 2),
    "tail": (lambda thread: thread.get("list", tail=2), [MINUS, 3]),
    "slice": (lambda thread: thread.get("list", limit=2), [1, MINUS]),
    "history": (lambda thread: [item.value for item in thread.history], ["first", {"n": NUMBER}, "last"]),
    "latest": (lambda thread: [item.value for item in thread.history.latest(2)], [{"n": NUMBER}, "last"]),
    "take": (lambda thread: [item.value for item in thread.history.take(2)], [{"n": NUMBER}, "last"]),
    "checkpoint": (lambda thread: thread.checkpoints.get(thread.checkpoints.create().checkpoint).metadata["n"], NUMBER),
    "fork": (lambda thread: thread.fork().get("n"), NUMBER),
    "rotate": (lambda thread: thread.rotate().read()["list"], [1, MINUS, 3]),
    "pop": (lambda thread: thread.merge([{"op": "pop", "key": "list", "count": 2}]).results[0]["values"], [MINUS, 3]),
}


@pytest.mark.parametrize("read", READS)
def test_every_read_has_the_exact_number_and_all_other_values(odd: Thread, read: str) -> None:
    call, expected = READS[read]
    assert call(odd) == expected


def test_ended_threads_and_exports_have_the_exact_number(tk: Threadkeep, odd: Thread) -> None:
    assert DIGITS in odd.export()
    assert any(DIGITS in document for document in tk.threads.export_all("of odd values"))
    odd.destroy()
    wait_until(lambda: odd.id in [archive.id for archive in tk.archives.list()])
    assert (tk.archives.get(odd.id).state or {})["n"] == NUMBER
    assert [item.value for item in tk.archives.history(odd.id)] == ["first", {"n": NUMBER}, "last"]


def test_streams_have_each_event_once(tk: Threadkeep, odd: Thread, send: Send) -> None:
    all_threads = Listener(tk.events(["thread.updated", "thread.destroyed"]))
    write_until_received(lambda: tk.threads.create().set("a", 1), all_threads)
    of_thread = Listener(odd.events(values=True))
    write_until_received(lambda: odd.set("begin", 1), of_thread)

    send(odd, "PUT", "/state/again", DIGITS)
    wait_until(lambda: {"again": NUMBER} in [event.data["data"].get("values") for event in of_thread.events])
    odd.set("after", 1)
    odd.destroy()
    of_thread.join()
    wait_until(lambda: all_threads.types()[-1] == "thread.destroyed")

    sequences = [event.data["data"]["sequence"] for event in of_thread.events]
    assert sequences == list(range(sequences[0], sequences[-1] + 1))
    of_odd = [event for event in all_threads.events if event.data["subject"] == odd.id]
    assert len({event.data["id"] for event in of_odd}) == len(of_odd)
    assert of_odd[-1].data["data"]["state"]["again"] == NUMBER


def test_an_event_that_is_not_json_raises(connect: Any, proxy: Proxy) -> None:
    body = b"id: 1\nevent: thread.updated\ndata: {}\n\nid: 2\nevent: thread.updated\ndata: <html>\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
    proxy.fault = lambda request: head + body
    events = connect(proxy.url).events()
    assert next(events).id == "1"
    with pytest.raises(InvalidResponse, match="event"):
        next(events)
    assert len(proxy.requests) == 1


def test_a_deep_value_is_read_in_a_deep_call(tk: Threadkeep) -> None:
    """Before Python 3.12, nesting levels of a parsed value and calls on the stack count toward the same limit."""
    thread = tk.threads.create(state={"deep": deep(500)})

    def read(calls: int) -> Any:
        return read(calls - 1) if calls else thread.get("deep")

    def depth(value: Any) -> int:
        levels = 0
        while isinstance(value, list):
            levels, value = levels + 1, value[0] if value else None
        return levels

    frames, frame = 0, sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        frames += 1
    assert depth(read(sys.getrecursionlimit() - 150 - frames)) == 500
