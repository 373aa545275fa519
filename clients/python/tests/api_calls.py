from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from support.server import wait_until

from threadkeep import EntryPut, Task, Thread, Threadkeep, Turn

Example = Callable[[Any], object]


def first(items: Iterable[Any]) -> None:
    next(iter(items), None)


def take_turn(thread: Thread) -> None:
    seen: set[str] = thread._runner.transport.seen  # type: ignore[attr-defined]
    with thread.turn(ttl_seconds=0.03):  # type: ignore[arg-type]
        wait_until(lambda: any(request.startswith("PATCH") for request in seen))  # waits for a renewal


def batch(thread: Thread) -> None:
    with thread.batch() as batch:
        batch.clear()


THREAD_CALLS: dict[str, Callable[[Thread], object]] = {
    "info()": lambda thread: thread.info(),
    "configure(metadata=, ttl_seconds=)": lambda thread: thread.configure(metadata={}),
    "assign(owner)": lambda thread: thread.assign("a"),
    "destroy()": lambda thread: thread.destroy(),
    "fork()": lambda thread: thread.fork(),
    "rotate()": lambda thread: thread.rotate(),
    "export()": lambda thread: thread.export(),
    "read(*keys)": lambda thread: thread.read(),
    "get(key)": lambda thread: thread.get("a"),
    "keys()": lambda thread: thread.keys(),
    "set(key, value)": lambda thread: thread.set("a", 1),
    "push(key, value)": lambda thread: thread.push("a", 1),
    "increment(key)": lambda thread: thread.increment("a"),
    "delete(key)": lambda thread: thread.delete("a"),
    "merge(operations)": lambda thread: thread.merge([]),
    "patch(patch)": lambda thread: thread.patch({}),
    "replace(state)": lambda thread: thread.replace({}),
    "clear()": lambda thread: thread.clear(),
    "batch()": batch,
    "turn()": take_turn,
    "turn_state()": lambda thread: thread.turn_state(),
    "events()": lambda thread: first(thread.events()),
    "checkpoints.create()": lambda thread: thread.checkpoints.create(),
    "checkpoints.list()": lambda thread: thread.checkpoints.list(),
    "checkpoints.get(number)": lambda thread: thread.checkpoints.get(1),
    "checkpoints.restore(number)": lambda thread: thread.checkpoints.restore(1),
    "checkpoints.delete(number)": lambda thread: thread.checkpoints.delete(1),
    "history.append(value)": lambda thread: thread.history.append(1),
    "history.append_many(values)": lambda thread: thread.history.append_many([1]),
    "history.items()": lambda thread: first(thread.history.items()),
    "history.latest(n)": lambda thread: thread.history.latest(1),
    "history.compact(values)": lambda thread: thread.history.compact([1], through=1, count=1),
    "history.segments()": lambda thread: thread.history.segments(),
    "history.segment(n)": lambda thread: first(thread.history.segment(1)),
    "history.take()": lambda thread: thread.history.take(),
    "history.delete(id)": lambda thread: thread.history.delete("a"),
    "history.clear()": lambda thread: thread.history.clear(),
    "effects.get(id)": lambda thread: thread.effects.get("a"),
    "effects.list()": lambda thread: first(thread.effects.list()),
}

TURN_CALLS: dict[str, Callable[[Turn], object]] = {
    "effect(call_id, tool, arguments, run)": lambda turn: turn.effect("a", "tool", {}, lambda effect: 1),
}

CLIENT_CALLS: dict[str, Callable[[Threadkeep], object]] = {
    "threads.create()": lambda tk: tk.threads.create(),
    "threads.list(owner)": lambda tk: first(tk.threads.list()),
    "threads.export_all(owner)": lambda tk: first(tk.threads.export_all()),
    "threads.import_document(document)": lambda tk: tk.threads.import_document("{}"),
    "events(types)": lambda tk: first(tk.events()),
    "namespaces()": lambda tk: first(tk.namespaces()),
    "api_key()": lambda tk: tk.api_key(),
    "settings()": lambda tk: tk.settings(),
    "stats()": lambda tk: tk.stats(),
    "archives.list()": lambda tk: first(tk.archives.list()),
    "archives.get(id)": lambda tk: tk.archives.get("a"),
    "archives.history(id)": lambda tk: first(tk.archives.history("a")),
    "archives.restore(id)": lambda tk: tk.archives.restore("a"),
    "owners.get(owner)": lambda tk: tk.owners.get("a"),
    "owners.erase(owner)": lambda tk: tk.owners.erase("a"),
    "tools.list()": lambda tk: tk.tools.list(),
    "tools.run(scope)": lambda tk: tk.tools.run("a"),
    "tools.mcp_url(scope)": lambda tk: tk.tools.mcp_url("a"),
    "webhooks.list()": lambda tk: tk.webhooks.list(),
    "webhooks.create(url, events)": lambda tk: tk.webhooks.create("a", []),
    "webhooks.get(id)": lambda tk: tk.webhooks.get("a"),
    "webhooks.update(id)": lambda tk: tk.webhooks.update("a"),
    "webhooks.delete(id)": lambda tk: tk.webhooks.delete("a"),
    "webhooks.pending(id)": lambda tk: tk.webhooks.pending("a"),
    "webhooks.failed(id)": lambda tk: first(tk.webhooks.failed("a")),
    "webhooks.replay(id)": lambda tk: tk.webhooks.replay("a"),
    "kv(namespace).get(key)": lambda tk: tk.kv("n").get("a"),
    "kv(namespace).put(key, body)": lambda tk: tk.kv("n").put("a", b""),
    "kv(namespace).delete(key)": lambda tk: tk.kv("n").delete("a"),
    "kv(namespace).keys(prefix)": lambda tk: first(tk.kv("n").keys()),
    "kv(namespace).entries(prefix)": lambda tk: first(tk.kv("n").entries()),
    "kv(namespace).get_many(keys)": lambda tk: tk.kv("n").get_many("a"),
    "kv(namespace).put_many(entries)": lambda tk: tk.kv("n").put_many([EntryPut("a", b"")]),
    "kv(namespace).configure()": lambda tk: tk.kv("n").configure(),
    "kv(namespace).clear()": lambda tk: tk.kv("n").clear(),
    "scope(name).get(key)": lambda tk: tk.scope("s").get("a"),
    "scope(name).get_many(keys)": lambda tk: tk.scope("s").get_many("a"),
    "scope(name).set(key, text)": lambda tk: tk.scope("s").set("a", "b"),
    "scope(name).set_many(texts)": lambda tk: tk.scope("s").set_many({}),
    "scope(name).increment(key)": lambda tk: tk.scope("s").increment("a"),
    "scope(name).delete(key)": lambda tk: tk.scope("s").delete("a"),
    "scope(name).keys(prefix)": lambda tk: tk.scope("s").keys(),
    "scope(name).describe()": lambda tk: tk.scope("s").describe(),
    "scope(name).clear()": lambda tk: tk.scope("s").clear(),
    "scope(name).end()": lambda tk: tk.scope("s").end(),
    "scope(name).call(tool)": lambda tk: tk.scope("s").call("kv_read"),
    "scope(name).tasks.get()": lambda tk: tk.scope("s").tasks.get(),
    "scope(name).tasks.set(tasks)": lambda tk: tk.scope("s").tasks.set([Task("a")]),
    "scope(name).tasks.update()": lambda tk: tk.scope("s").tasks.update(index=0),
}
