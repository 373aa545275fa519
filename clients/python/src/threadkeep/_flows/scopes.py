from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._flow import Flow
from .._http.message import Request
from .._json import encode
from .._omitted import not_none
from .._resource import Resource, segment
from ..models import Receipt, ScopeInfo, Task, ToolResult
from .receipts import received, written


class ScopeResource(Resource):
    """A scope. Its name is in request bodies, not in paths."""

    def __init__(self, resource: Resource, scope: str) -> None:
        super().__init__("/v1", resource.headers, repr(scope.partition(";")[0]), has_login=resource.has_login)
        self.scope = scope

    def ask(self, suffix: str, **members: Any) -> Request:
        return self.read(suffix, method="POST", body={"scope": self.scope, **not_none(**members)})

    def change(self, suffix: str, idempotency_key: str | None, method: str = "POST", **members: Any) -> Request:
        body = {"scope": self.scope, **not_none(**members)}
        return self.write(method, suffix, encode(body), idempotency_key=idempotency_key)


def get(scope: ScopeResource, key: str) -> Flow[str | None]:
    """Returns the text at `key`, or None."""
    value: str | None = (yield from received(scope.ask("/scopes/keys/get", key=key)))["value"]
    return value


def get_many(scope: ScopeResource, keys: Iterable[str]) -> Flow[dict[str, str | None]]:
    """Returns the texts at `keys`, with None for each absent key."""
    values: dict[str, str | None] = (yield from received(scope.ask("/scopes/keys/get", keys=list(keys))))["values"]
    return values


def set(
    scope: ScopeResource,
    key: str,
    text: str,
    *,
    ttl_seconds: int | None = None,
    if_absent: bool = False,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Sets a key to a string. With `if_absent`, does not change an existing key."""
    request = scope.change(
        "/scopes/keys/set",
        idempotency_key,
        key=key,
        value=text,
        ttl_seconds=ttl_seconds,
        if_absent=if_absent or None,
        if_version=if_version,
    )
    return (yield from written(request))


def set_many(
    scope: ScopeResource,
    texts: Mapping[str, str],
    *,
    ttl_seconds: int | None = None,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Sets several keys atomically."""
    entries = [not_none(key=key, value=text, ttl_seconds=ttl_seconds) for key, text in texts.items()]
    request = scope.change("/scopes/keys/set", idempotency_key, entries=entries, if_version=if_version)
    return (yield from written(request))


def increment(
    scope: ScopeResource,
    key: str,
    by: int = 1,
    *,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[int]:
    """Adds to the integer at `key`. Returns the sum."""
    request = scope.change("/scopes/keys/increment", idempotency_key, key=key, by=by, if_version=if_version)
    return int((yield from received(request))["value"])


def delete(
    scope: ScopeResource, key: str, *, if_version: int | None = None, idempotency_key: str | None = None
) -> Flow[bool]:
    """Deletes a key. Returns whether it existed."""
    request = scope.change("/scopes/keys/delete", idempotency_key, key=key, if_version=if_version)
    return bool((yield from received(request))["deleted"])


def keys(scope: ScopeResource, prefix: str = "") -> Flow[list[str]]:
    """Returns the keys that begin with `prefix`, sorted."""
    found: list[str] = (yield from received(scope.ask("/scopes/keys/list", prefix=prefix or None)))["keys"]
    return found


def describe(scope: ScopeResource) -> Flow[ScopeInfo]:
    """Returns the scope without its contents."""
    return ScopeInfo.of((yield from received(scope.ask("/scopes/describe"))))


def clear(
    scope: ScopeResource,
    *,
    keep_unfinished: bool = False,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Deletes all keys and tasks."""
    request = scope.change(
        "/scopes/clear", idempotency_key, keep_unfinished=keep_unfinished or None, if_version=if_version
    )
    return (yield from written(request))


def end(scope: ScopeResource, *, if_version: int | None = None, idempotency_key: str | None = None) -> Flow[bool]:
    """Ends the scope. Returns whether it existed."""
    request = scope.change("/scopes", idempotency_key, "DELETE", if_version=if_version)
    return bool((yield from received(request))["ended"])


def call(
    scope: ScopeResource,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    idempotency_key: str | None = None,
) -> Flow[ToolResult]:
    """Calls a tool as a model would. If the arguments are wrong, returns a result with an `error` for the model."""
    request = scope.change(f"/tools/{segment(tool)}", idempotency_key, arguments=dict(arguments or {}))
    return ToolResult.of((yield from received(request)))


def tasks(scope: ScopeResource) -> Flow[list[Task]]:
    """Returns the tasks."""
    return [Task.of(task) for task in (yield from received(scope.ask("/scopes/tasks/get")))["tasks"]]


def set_tasks(
    scope: ScopeResource,
    tasks: Iterable[Task],
    *,
    keep_unfinished: bool = False,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Replaces the task list. With `keep_unfinished`, the list must contain every unfinished task."""
    request = scope.change(
        "/scopes/tasks/set",
        idempotency_key,
        tasks=[not_none(**vars(task)) for task in tasks],
        keep_unfinished=keep_unfinished or None,
        if_version=if_version,
    )
    return (yield from written(request))


def update_task(
    scope: ScopeResource,
    *,
    id: str | None = None,
    index: int | None = None,
    status: str | None = None,
    content: str | None = None,
    active_form: str | None = None,
    if_version: int | None = None,
    idempotency_key: str | None = None,
) -> Flow[Receipt]:
    """Changes one task, identified by ID or index."""
    request = scope.change(
        "/scopes/tasks/update",
        idempotency_key,
        id=id,
        index=index,
        status=status,
        content=content,
        active_form=active_form,
        if_version=if_version,
    )
    return (yield from written(request))
