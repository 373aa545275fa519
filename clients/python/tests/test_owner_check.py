from __future__ import annotations

import secrets
from typing import Any

import pytest
from support.proxy import Proxy

from threadkeep import Forbidden, Thread, Threadkeep, thread_id_for

CALLS = {
    "info": lambda thread: thread.info(),
    "read": lambda thread: thread.read(),
    "get": lambda thread: thread.get("a"),
    "set": lambda thread: thread.set("a", 1),
    "batch": lambda thread: in_batch(thread),
    "configure": lambda thread: thread.configure(metadata={"a": 1}),
    "destroy": lambda thread: thread.destroy(),
    "fork": lambda thread: thread.fork(),
    "turn": lambda thread: thread.turn().__enter__(),
    "append": lambda thread: thread.history.append("x"),
    "items": lambda thread: list(thread.history),
    "checkpoint": lambda thread: thread.checkpoints.create(),
    "events": lambda thread: next(iter(thread.events())),
}


def in_batch(thread: Thread) -> None:
    with thread.batch() as batch:
        batch.set("a", 1)


def new_id() -> str:
    return thread_id_for(secrets.token_hex(8))


@pytest.mark.parametrize("owner", ["grace", None])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_thread_of_another_owner_is_neither_read_nor_written(
    connect: Any, proxy: Proxy, call: Any, owner: str | None
) -> None:
    tk: Threadkeep = connect(proxy.url)
    fields: dict[str, Any] = {} if owner is None else {"owner": owner}
    stored = tk.threads.create(state={"secret": 1}, **fields)
    before = stored.info()
    proxy.requests.clear()

    with pytest.raises(Forbidden) as raised:
        call(tk.thread(stored.id, owner="ada"))

    assert raised.value.code == "not_the_owner"
    assert [request.split(b"\r\n")[0] for request in proxy.requests] == [
        f"GET /v1/threads/{stored.id}?peek=true HTTP/1.1".encode()
    ]
    assert stored.info().version == before.version


def test_a_thread_of_the_owner_is_checked_once(connect: Any, proxy: Proxy) -> None:
    tk: Threadkeep = connect(proxy.url)
    id = tk.threads.create(owner="ada", state={"a": 1}).id
    proxy.requests.clear()
    thread = tk.thread(id, owner="ada")
    assert proxy.requests == []

    assert thread.get("a") == 1
    assert thread.increment("a") == 2
    assert [item.value for item in thread.history] == []

    assert len(proxy.requests) == 4


def test_a_thread_that_does_not_exist_is_created_for_the_owner(tk: Threadkeep) -> None:
    thread = tk.thread(new_id(), owner="ada", ttl_seconds=900)

    thread.push("messages", "Hello")

    info = thread.info()
    assert (info.owner, info.ttl_seconds) == ("ada", 900)
    assert tk.thread(info.id).get("messages") == ["Hello"]
    with pytest.raises(Forbidden):
        tk.thread(info.id, owner="grace").get("messages")


def test_none_is_rejected_as_an_owner(tk: Any) -> None:
    with pytest.raises(TypeError):
        tk.thread(new_id(), owner=None)
