from __future__ import annotations

import time

import pytest

from threadkeep import Scope, Task, Threadkeep, VersionMismatch


@pytest.fixture
def scope(tk: Threadkeep) -> Scope:
    return tk.scope(f"session:{time.time_ns()}")


def test_keys_hold_texts(scope: Scope) -> None:
    first = scope.set("city", "Paris")
    assert scope.get("city") == "Paris"
    scope.set("city", "Rome", if_absent=True)
    assert scope.get("city") == "Paris"
    with pytest.raises(VersionMismatch):
        scope.set("city", "Rome", if_version=(first.version or 0) + 5)
    scope.set_many({"a": "1", "b": "2"})
    assert scope.get_many(["a", "c"]) == {"a": "1", "c": None}
    assert scope.keys() == ["a", "b", "city"]
    assert scope.keys("c") == ["city"]
    assert scope.increment("n", 5) == 5
    assert scope.delete("n") is True
    assert scope.get("n") is None
    assert scope.describe().keys == 3
    scope.clear()
    assert scope.keys() == []
    assert scope.end() is True


def test_tasks(scope: Scope) -> None:
    scope.tasks.set([Task("boil water"), Task("drink tea", "in_progress")])
    scope.tasks.update(index=0, status="completed")
    assert [(task.content, task.status) for task in scope.tasks.get()] == [
        ("boil water", "completed"),
        ("drink tea", "in_progress"),
    ]


def test_tools(scope: Scope, tk: Threadkeep) -> None:
    assert scope.call("kv_write", {"key": "a", "value": "b"}).result == {"ok": True}
    assert scope.call("kv_write", {"key": "a"}).error
    assert "kv_read" in str(tk.tools.list(format="anthropic"))
    call = {"id": "call_1", "type": "function", "function": {"name": "kv_read", "arguments": '{"key":"a"}'}}
    answer = tk.tools.run(scope._resource.scope, tool_calls=[call])
    assert answer.messages[0]["tool_call_id"] == "call_1"
    url = tk.tools.mcp_url(scope._resource.scope, expires_in_seconds=60)
    assert "/mcp?" in url.url and url.url not in repr(url)
