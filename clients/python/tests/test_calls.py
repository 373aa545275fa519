"""Tests the table of calls and methods in docs/python.md. Operations of other protocols are not in the table."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from api_calls import CLIENT_CALLS, THREAD_CALLS, TURN_CALLS, Example

from threadkeep import AsyncThreadkeep, AsyncTurn, Thread, Threadkeep, Turn
from threadkeep._flow import Handle
from threadkeep._flows.turns import Grant
from threadkeep._http.message import Request, Response
from threadkeep.turn import _Lease

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[3]))
PAGE = REPOSITORY / "docs/python.md"
METHODS = ("get", "put", "post", "patch", "delete")
# calls for which the client has no method: probes, metrics, and an export that the client requests by thread ID
WITHOUT_METHOD = {"GET /healthz", "GET /readyz", "GET /metrics", "GET /v1/threads/current/export"}
HEADING = """## Calls and methods

Each call of the API, with the methods that make it. `AsyncThreadkeep` has the same methods. A call for
`/v1/threads/current` exists for `/v1/threads/{id}`, too: `tk.current(signed_id)` makes the one, `tk.thread(id)` the
other. The tests write this table with `WRITE_DOCS=1`.

| call | method |
|---|---|
"""


class Fake:
    """A fake transport. Records requests, and returns a response that is valid for all methods."""

    ANSWER = (
        # every response contains all of these strings, numbers, flags and lists
        dict.fromkeys(("id", "token", "owner", "name", "life", "reason", "url", "scope", "namespace"), "thrd_x")
        | dict.fromkeys(("version", "size_bytes", "limit_bytes", "ttl_seconds", "value", "limit_keys", "checkpoint"), 1)
        | {"total": 1}
        | dict.fromkeys(("tasks", "unfinished_tasks", "history", "history_bytes", "history_limit_bytes", "replayed"), 1)
        | dict.fromkeys(("complete", "exists", "held", "is_ended", "ended", "deleted"), True)
        | {name: [] for name in ("results", "entries", "unread", "tools", "webhooks", "failed", "namespaces")}
        | {"segments": [], "segment": 1}
        | {name: [] for name in ("checkpoints", "messages", "keys", "events", "rights", "settings", "pending")}
        | {"items": [{"id": "a", "seq": 1, "repeated": False, "value": 1, "at": "2026-01-01T00:00:00Z"}]}
        | {"signed_id": "thrd_x;y", "values": {}, "threads": 1, "archives": 1}
        | {"number": 1, "in_doubt": 0, "effects": [], "state": "granted", "tool": "tool", "hash": "h", "attempt": 1}
        | {"idempotency_key": "k", "turn": 1, "begun_at": "2026-01-01T00:00:00Z", "fence": "f"}
    )

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def send(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        self.seen.add(f"{request.method} {path}")
        lists = {name: [] for name in ("threads", "archives", "tasks") if path.endswith((f"/{name}", f"/{name}/get"))}
        is_list = path.endswith("/keys") or "tail=" in request.target or "offset=" in request.target
        headers = {"content-type": "application/json"}
        return Response(200, headers, json.dumps([] if is_list else self.ANSWER | lists).encode())

    def open(self, request: Request) -> Any:
        self.send(request)
        raise StopIteration

    def close(self) -> None:
        pass


def turn_of(thread: Thread) -> Turn:
    return Turn(thread, Grant("token", 1, 0), _Lease(30, time.monotonic()))


def requests_of(example: Example, client: Threadkeep, subject: Any) -> set[str]:
    fake = Fake()
    client._runner.transport = fake  # type: ignore[assignment]
    try:
        example(subject)
    except RuntimeError:  # the fake cannot stream, but has recorded the request
        pass
    return fake.seen


def operations() -> list[str]:
    paths = json.loads((REPOSITORY / "openapi.json").read_text())["paths"]
    return [
        f"{method.upper()} {path}"
        for path, item in paths.items()
        for method in item
        if method in METHODS and "externalDocs" not in item[method]
    ]


def matching(request: str, candidates: list[str]) -> str:
    """Returns the operation that matches a request. If several match, prefers the one with the fewest parameters."""

    def fits(operation: str) -> bool:
        return re.fullmatch(re.sub(r"\\{[^/]*\\}", "[^/]+", re.escape(operation)), request) is not None

    return min(filter(fits, candidates), key=lambda operation: operation.count("{"), default=request)


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    """Returns the methods by operation."""
    candidates, found = operations(), defaultdict(list)

    def enter(name: str, requests: set[str]) -> None:
        for request in requests:
            methods = found[matching(request, candidates)]
            if name not in methods:
                methods.append(name)

    for name, example in THREAD_CALLS.items():
        client = Threadkeep("http://fake", api_key="k")
        for thread in (client.thread("thrd_x"), client.current("thrd_x;y")):
            enter(f"thread.{name}", requests_of(example, client, thread))
    for name, turn_example in TURN_CALLS.items():
        client = Threadkeep("http://fake", api_key="k")
        for thread in (client.thread("thrd_x"), client.current("thrd_x;y")):
            enter(f"turn.{name}", requests_of(turn_example, client, turn_of(thread)))
    for name, client_example in CLIENT_CALLS.items():
        client = Threadkeep("http://fake", api_key="k")
        enter(f"tk.{name}", requests_of(client_example, client, client))
    return found


def test_every_call_of_the_api_has_a_method(table: dict[str, list[str]]) -> None:
    assert set(operations()) - set(table) <= WITHOUT_METHOD
    assert set(table) - set(operations()) <= WITHOUT_METHOD


def test_the_table_is_current(table: dict[str, list[str]]) -> None:
    rows: dict[str, list[str]] = {}
    for operation, methods in table.items():
        row = rows.setdefault(re.sub(r"/v1/threads/({id}|current)", "/v1/threads/current", operation), [])
        row += [method for method in methods if method not in row]
    order = sorted(rows, key=lambda operation: operation.split(" ")[::-1])
    lines = [f"| `{operation}` | {', '.join(f'`{method}`' for method in rows[operation])} |" for operation in order]
    page = PAGE.read_text()
    text = page[: page.index(HEADING)] + HEADING + "\n".join(lines) + "\n"
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(text)
    assert page == text


VERBS = re.findall(
    r"^\|[^|]+\| (`.*`|-) \| (`.*`|-) \|$", (REPOSITORY / "docs/client-verbs.md").read_text("utf-8"), re.M
)
NO_CALL = "-"


def methods_of(name: str, part: Any) -> set[str]:
    """Returns the methods of an object and of its members."""
    found: set[str] = set()
    for member in (member for member in dir(part) if not member.startswith("_")):
        value = getattr(part, member)
        if isinstance(value, Handle):
            found |= methods_of(f"{name}.{member}", value)
        elif callable(value):
            found.add(f"`{name}.{member}()`")
    return found


def test_the_table_of_verbs_has_every_method() -> None:
    tk = Threadkeep("http://fake", api_key="k")
    parts = {"tk": tk, "thread": tk.thread("thrd_x"), "tk.scope(name)": tk.scope("s"), "tk.kv(namespace)": tk.kv("n")}
    methods = {method for name, part in parts.items() for method in methods_of(name, part)}
    methods |= {f"`turn.{name.partition('(')[0]}()`" for name in TURN_CALLS}
    table = [python for python, _ in VERBS if python != NO_CALL]
    assert sorted(table) == sorted({"`thread_id_for()`"} | methods)


def test_both_languages_use_the_same_method_names() -> None:
    def word(cell: str) -> str:
        return cell.strip("`()").rpartition(".")[2].replace("_", "").lower()

    assert [pair for pair in VERBS if NO_CALL not in pair and word(pair[0]) != word(pair[1])] == []


def test_both_clients_have_the_same_methods() -> None:
    pairs = [(Threadkeep("http://fake"), AsyncThreadkeep("http://fake"))]
    thread = "thrd_x"
    pairs += [(one.thread(thread), other.thread(thread)) for one, other in pairs[:1]]  # type: ignore[misc]
    while pairs:
        one, other = pairs.pop()
        names = {name for name in dir(one) if not name.startswith("_")}
        assert names == {name for name in dir(other) if not name.startswith("_")}
        for name in names:
            part = getattr(one, name)
            if type(part).__module__.startswith("threadkeep"):
                pairs.append((part, getattr(other, name)))
    assert {name for name in dir(Turn) if name[0] != "_"} == {name for name in dir(AsyncTurn) if name[0] != "_"}
