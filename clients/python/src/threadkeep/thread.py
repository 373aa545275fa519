from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ._flow import AsyncHandle, AsyncRunner, Flow, Handle, Runner, async_iterating, awaitable, blocking, iterating
from ._flows import events as event_flows
from ._flows import state as state_flows
from ._flows import threads, transfer, turns
from ._resource import Resource, ThreadResource
from .batch import AsyncBatchContext, BatchContext
from .checkpoints import AsyncCheckpoints, Checkpoints
from .effects import AsyncEffects, Effects
from .history import AsyncHistory, History
from .turn import AsyncTurnContext, TurnContext

P = ParamSpec("P")
Res = TypeVar("Res", bound=Resource)


def opening(
    flow: Callable[Concatenate[Res, P], Flow[ThreadResource]],
) -> Callable[Concatenate[Handle[Res], P], Thread]:
    @wraps(flow)
    def call(self: Handle[Res], /, *args: P.args, **kwargs: P.kwargs) -> Thread:
        return Thread(self._runner, self._runner.run(flow(self._resource, *args, **kwargs)))

    return call


def async_opening(
    flow: Callable[Concatenate[Res, P], Flow[ThreadResource]],
) -> Callable[Concatenate[AsyncHandle[Res], P], Coroutine[Any, Any, AsyncThread]]:
    @wraps(flow)
    async def call(self: AsyncHandle[Res], /, *args: P.args, **kwargs: P.kwargs) -> AsyncThread:
        return AsyncThread(self._runner, await self._runner.run(flow(self._resource, *args, **kwargs)))

    return call


class Thread(Handle[ThreadResource]):
    """A thread. The first write creates the thread. Before that, reads return an empty state."""

    def __init__(self, runner: Runner, resource: ThreadResource) -> None:
        super().__init__(runner, resource)
        self.id = resource.id
        self.signed_id = resource.signed_id
        self.history = History(runner, resource)
        self.checkpoints = Checkpoints(runner, resource)
        self.effects = Effects(runner, resource)

    info = blocking(threads.info)
    configure = blocking(threads.configure)
    assign = blocking(threads.assign)
    destroy = blocking(threads.destroy)
    fork = opening(threads.fork)
    rotate = opening(threads.rotate)
    export = blocking(transfer.export)

    read = blocking(state_flows.read)
    get = blocking(state_flows.get)
    keys = blocking(state_flows.keys)
    set = blocking(state_flows.set)
    push = blocking(state_flows.push)
    increment = blocking(state_flows.increment)
    delete = blocking(state_flows.delete)
    merge = blocking(state_flows.merge)
    patch = blocking(state_flows.patch)
    replace = blocking(state_flows.replace)
    clear = blocking(state_flows.clear)

    turn_state = blocking(turns.state)
    events = iterating(event_flows.of_thread)

    def batch(self, *, if_match: str | int | None = None, idempotency_key: str | None = None) -> BatchContext:
        """Collects operations in a `with` block, and sends them as one merge."""
        return BatchContext(self._runner, self._resource, if_match, idempotency_key)

    def turn(self, *, ttl_seconds: int = 30, wait_seconds: int = 0, exclusive: bool = False) -> TurnContext:
        """Takes the turn, a lease on the thread, for a `with` block. Renews the lease until the block ends.

        Raises `Conflict` with `turn_taken` if another caller still holds the turn after `wait_seconds` (0 to 30). While
        you hold an exclusive turn, other callers' writes also raise `turn_taken`.
        """
        return TurnContext(self._runner, self._resource, ttl_seconds, wait_seconds, exclusive)


class AsyncThread(AsyncHandle[ThreadResource]):
    """A thread. The first write creates the thread. Before that, reads return an empty state."""

    def __init__(self, runner: AsyncRunner, resource: ThreadResource) -> None:
        super().__init__(runner, resource)
        self.id = resource.id
        self.signed_id = resource.signed_id
        self.history = AsyncHistory(runner, resource)
        self.checkpoints = AsyncCheckpoints(runner, resource)
        self.effects = AsyncEffects(runner, resource)

    info = awaitable(threads.info)
    configure = awaitable(threads.configure)
    assign = awaitable(threads.assign)
    destroy = awaitable(threads.destroy)
    fork = async_opening(threads.fork)
    rotate = async_opening(threads.rotate)
    export = awaitable(transfer.export)

    read = awaitable(state_flows.read)
    get = awaitable(state_flows.get)
    keys = awaitable(state_flows.keys)
    set = awaitable(state_flows.set)
    push = awaitable(state_flows.push)
    increment = awaitable(state_flows.increment)
    delete = awaitable(state_flows.delete)
    merge = awaitable(state_flows.merge)
    patch = awaitable(state_flows.patch)
    replace = awaitable(state_flows.replace)
    clear = awaitable(state_flows.clear)

    turn_state = awaitable(turns.state)
    events = async_iterating(event_flows.of_thread)

    def batch(self, *, if_match: str | int | None = None, idempotency_key: str | None = None) -> AsyncBatchContext:
        """Collects operations in an `async with` block, and sends them as one merge."""
        return AsyncBatchContext(self._runner, self._resource, if_match, idempotency_key)

    def turn(self, *, ttl_seconds: int = 30, wait_seconds: int = 0, exclusive: bool = False) -> AsyncTurnContext:
        """Takes the turn, a lease on the thread, for an `async with` block. Renews the lease until the block ends.

        Raises `Conflict` with `turn_taken` if another caller still holds the turn after `wait_seconds` (0 to 30). While
        you hold an exclusive turn, other callers' writes also raise `turn_taken`.
        """
        return AsyncTurnContext(self._runner, self._resource, ttl_seconds, wait_seconds, exclusive)
