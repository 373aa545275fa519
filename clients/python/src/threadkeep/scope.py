from __future__ import annotations

from ._flow import AsyncHandle, AsyncRunner, Handle, Runner, awaitable, blocking
from ._flows import scopes
from ._flows.scopes import ScopeResource


class Tasks(Handle[ScopeResource]):
    """The task list of a scope."""

    get = blocking(scopes.tasks)
    set = blocking(scopes.set_tasks)
    update = blocking(scopes.update_task)


class Scope(Handle[ScopeResource]):
    """A set of keys with string values, and a task list. The keys and the task list share one version."""

    def __init__(self, runner: Runner, resource: ScopeResource) -> None:
        super().__init__(runner, resource)
        self.tasks = Tasks(runner, resource)

    get = blocking(scopes.get)
    get_many = blocking(scopes.get_many)
    set = blocking(scopes.set)
    set_many = blocking(scopes.set_many)
    increment = blocking(scopes.increment)
    delete = blocking(scopes.delete)
    keys = blocking(scopes.keys)
    describe = blocking(scopes.describe)
    clear = blocking(scopes.clear)
    end = blocking(scopes.end)
    call = blocking(scopes.call)


class AsyncTasks(AsyncHandle[ScopeResource]):
    """The task list of a scope."""

    get = awaitable(scopes.tasks)
    set = awaitable(scopes.set_tasks)
    update = awaitable(scopes.update_task)


class AsyncScope(AsyncHandle[ScopeResource]):
    """A set of keys with string values, and a task list. The keys and the task list share one version."""

    def __init__(self, runner: AsyncRunner, resource: ScopeResource) -> None:
        super().__init__(runner, resource)
        self.tasks = AsyncTasks(runner, resource)

    get = awaitable(scopes.get)
    get_many = awaitable(scopes.get_many)
    set = awaitable(scopes.set)
    set_many = awaitable(scopes.set_many)
    increment = awaitable(scopes.increment)
    delete = awaitable(scopes.delete)
    keys = awaitable(scopes.keys)
    describe = awaitable(scopes.describe)
    clear = awaitable(scopes.clear)
    end = awaitable(scopes.end)
    call = awaitable(scopes.call)
