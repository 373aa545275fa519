from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.proxy import Proxy
from support.server import PATIENCE_SECONDS, Server, wait_until

from threadkeep import Event, Threadkeep, Unauthorized


class Listener:
    def __init__(self, events: Iterator[Event]) -> None:
        self.events: list[Event] = []
        self._thread = threading.Thread(target=self._listen, args=(events,), daemon=True)
        self._thread.start()

    def _listen(self, events: Iterator[Event]) -> None:
        for event in events:
            self.events.append(event)

    def join(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def write_until_received(write: Callable[[], Any], listener: Listener) -> None:
    """Repeats `write` until the listener receives an event, because the stream misses writes before it is connected."""

    def received() -> bool:
        write()
        time.sleep(0.2)
        return bool(listener.events)

    wait_until(received)


def test_a_stream_ends_with_its_thread(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    listener = Listener(thread.events(values=True))
    write_until_received(lambda: thread.set("a", 1), listener)
    thread.history.append("x")
    thread.destroy()
    listener.join()

    assert listener.types()[-2:] == ["history.appended", "thread.destroyed"]
    first = listener.events[0]
    assert first.type == "thread.updated"
    assert first.data["data"]["values"] == {"a": 1}
    assert first.data["subject"] == thread.id


def test_a_stream_continues_after_an_event(tk: Threadkeep) -> None:
    thread = tk.threads.create()
    listener = Listener(thread.events())
    write_until_received(lambda: thread.set("a", 1), listener)
    cursor = listener.events[0].id
    for n in range(3):
        thread.set(f"k{n}", n)
    thread.destroy()
    listener.join()
    again = Listener(thread.events(last_event_id=cursor))
    again.join()
    assert again.events == listener.events[1:]


def test_events_of_all_threads_are_selected_by_type(tk: Threadkeep) -> None:
    events = tk.events(["thread.created"])
    listener = Listener(events)
    write_until_received(tk.threads.create, listener)
    thread = tk.threads.create()
    wait_until(lambda: listener.events[-1].data["subject"] == thread.id)
    assert set(listener.types()) == {"thread.created"}


def test_a_stream_survives_a_restart_of_the_server(connect: Any, own_server: Server) -> None:
    client: Threadkeep = connect(own_server.url, max_retries=8)
    id = client.threads.create().id
    listener = Listener(client.thread(id).events())
    write_until_received(lambda: client.thread(id).set("before", 1), listener)
    own_server.stop()
    own_server.start()

    received = len(listener.events)
    if os.environ.get("STORE") == "redis":
        client.thread(id).set("after", 1)
        wait_until(lambda: len(listener.events) > received)
        assert listener.events[-1].data["data"]["keys"] == ["after"]
        sequences = [event.data["data"]["sequence"] for event in listener.events]
        assert sequences == list(range(sequences[0], sequences[-1] + 1))
    else:  # the memory store is empty after the restart
        wait_until(lambda: "reset" in listener.types())
        write_until_received(lambda: client.thread(id).set("after", 1), listener)
    client.thread(id).destroy()
    listener.join()


def test_a_broken_stream_is_resumed(connect: Any, proxy: Proxy, tk: Threadkeep) -> None:
    message = b'retry: 10\nid: %d\nevent: thread.updated\ndata: {"n":%d}\n\n'
    count = 0

    def answer(request: bytes) -> bytes:
        nonlocal count
        count += 1
        if count == 2:
            return b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
        body = message % (count, count)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
        return head + body

    proxy.fault = answer
    client: Threadkeep = connect(proxy.url)
    events = client.events()
    assert [next(events).data["n"] for _ in range(3)] == [1, 3, 4]
    assert b"last-event-id: 1\r\n" in proxy.requests[2]


def test_a_rejected_stream_raises(connect: Any, server: Server) -> None:
    client: Threadkeep = connect(server.url, api_key="wrong-" * 8)
    with pytest.raises(Unauthorized):
        next(client.events())
