from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._flow import AsyncRunner, Runner
from ._flows import effects, turns
from ._resource import ThreadResource
from ._tool_calls import ToolCall, ToolCalls
from .errors import APIError, RateLimited, ThreadkeepError
from .models import Effect

if TYPE_CHECKING:
    from .thread import AsyncThread, Thread


class _Lease:
    def __init__(self, ttl_seconds: int, taken_at: float) -> None:
        self.ttl_seconds = ttl_seconds
        self.until = taken_at + ttl_seconds
        self.is_refused = False

    @property
    def is_lost(self) -> bool:
        return self.is_refused or time.monotonic() >= self.until

    @property
    def pause_seconds(self) -> float:
        return self.ttl_seconds / 3

    def renewed(self, sent_at: float) -> None:
        self.until = sent_at + self.ttl_seconds

    def failed(self, error: ThreadkeepError) -> None:
        """Records whether the server rejected a renewal. After other failures, the turn lasts until its TTL."""
        self.is_refused = isinstance(error, APIError) and error.status < 500 and not isinstance(error, RateLimited)


class Turn:
    """A lease on a thread. Write through `thread`. After the lease is lost, writes raise `Conflict` (`turn_lost`)."""

    def __init__(self, thread: Thread, grant: turns.Grant, lease: _Lease) -> None:
        self.thread = thread
        self.token = grant.token
        self.number = grant.number
        """Number of the turn in the thread's life, starting at 1. Other systems can use it as a fencing token."""
        self.in_doubt = grant.in_doubt
        """Number of effects that were in doubt when the turn began."""
        self._lease = lease
        self._calls = ToolCalls(lambda: lease.is_lost)

    @property
    def is_lost(self) -> bool:
        """Whether the turn is known to be lost. The caller should then stop its work."""
        return self._lease.is_lost

    def effect(
        self,
        call_id: str,
        tool: str,
        arguments: Any,
        run: Callable[[Effect], Any],
        *,
        check: Callable[[str], Any] | None = None,
        idempotent: bool = False,
        retry: bool = False,
    ) -> Any:
        """Runs a tool call once, even if processes die or repeat the call. Returns the result as parsed JSON.

        Calls `run(effect)`. Pass `effect.key` to the system that the tool calls. If `run` raises `EffectFailed`, its
        error is recorded. Later calls then raise `EffectFailed`, or run the tool again if `retry` is true. If `run`
        raises another exception, nothing is recorded, because the tool may have run.

        If the tool may have run, calls `check(key)`, which returns the tool's result, or `NOT_DONE` to run the tool.
        Without `check`, raises `EffectInDoubt`. If `idempotent` is true, runs the tool again with the same key instead.
        """
        call = ToolCall(call_id, tool, arguments, run, check, idempotent, retry)
        with self._calls.progress_of(call_id) as progress:
            flow = effects.perform(self.thread._resource, call, progress, self._calls)
            return self.thread._runner.run(flow)

    def __repr__(self) -> str:
        return f"Turn({self.thread._resource.name})"


class AsyncTurn:
    """A lease on a thread. Write through `thread`. After the lease is lost, writes raise `Conflict` (`turn_lost`)."""

    def __init__(self, thread: AsyncThread, grant: turns.Grant, lease: _Lease) -> None:
        self.thread = thread
        self.token = grant.token
        self.number = grant.number
        """Number of the turn in the thread's life, starting at 1. Other systems can use it as a fencing token."""
        self.in_doubt = grant.in_doubt
        """Number of effects that were in doubt when the turn began."""
        self._lease = lease
        self._calls = ToolCalls(lambda: lease.is_lost)

    @property
    def is_lost(self) -> bool:
        """Whether the turn is known to be lost. The caller should then stop its work."""
        return self._lease.is_lost

    async def effect(
        self,
        call_id: str,
        tool: str,
        arguments: Any,
        run: Callable[[Effect], Any],
        *,
        check: Callable[[str], Any] | None = None,
        idempotent: bool = False,
        retry: bool = False,
    ) -> Any:
        """Runs a tool call once, even if processes die or repeat the call. Returns the result as parsed JSON.

        Calls `run(effect)`. Pass `effect.key` to the system that the tool calls. If `run` raises `EffectFailed`, its
        error is recorded. Later calls then raise `EffectFailed`, or run the tool again if `retry` is true. If `run`
        raises another exception, nothing is recorded, because the tool may have run.

        If the tool may have run, calls `check(key)`, which returns the tool's result, or `NOT_DONE` to run the tool.
        Without `check`, raises `EffectInDoubt`. If `idempotent` is true, runs the tool again with the same key instead.

        `run` and `check` may be functions or coroutine functions.
        """
        call = ToolCall(call_id, tool, arguments, run, check, idempotent, retry)
        with self._calls.progress_of(call_id) as progress:
            flow = effects.perform(self.thread._resource, call, progress, self._calls)
            return await self.thread._runner.run(flow)

    def __repr__(self) -> str:
        return f"AsyncTurn({self.thread._resource.name})"


class TurnContext:
    def __init__(
        self, runner: Runner, resource: ThreadResource, ttl_seconds: int, wait_seconds: int, exclusive: bool
    ) -> None:
        self._runner = runner
        self._resource = resource
        self._options = (ttl_seconds, wait_seconds, exclusive)

    def __enter__(self) -> Turn:
        from .thread import Thread

        self._released = threading.Event()
        grant = self._runner.run(turns.take(self._resource, *self._options))
        self._lease = _Lease(self._options[0], time.monotonic())
        self._token = grant.token
        threading.Thread(target=self._renew, args=(self._released,), name="threadkeep-turn", daemon=True).start()
        return Turn(Thread(self._runner, self._resource.with_turn(grant.token)), grant, self._lease)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        try:
            self._runner.run(turns.release(self._resource, self._token, is_complete=kind is None))
        except ThreadkeepError:
            if kind is None:
                raise

    def _renew(self, released: threading.Event) -> None:
        lease = self._lease
        while not lease.is_refused and not released.wait(lease.pause_seconds):
            sent_at = time.monotonic()
            try:
                self._runner.run(turns.renew(self._resource, self._token, lease.ttl_seconds))
                lease.renewed(sent_at)
            except ThreadkeepError as error:
                if not released.is_set():
                    lease.failed(error)


_release_tasks: set[asyncio.Future[None]] = set()
"""Keeps tasks that release turns alive, because event loops hold only weak references to tasks."""


class AsyncTurnContext:
    def __init__(
        self, runner: AsyncRunner, resource: ThreadResource, ttl_seconds: int, wait_seconds: int, exclusive: bool
    ) -> None:
        self._runner = runner
        self._resource = resource
        self._options = (ttl_seconds, wait_seconds, exclusive)

    async def __aenter__(self) -> AsyncTurn:
        from .thread import AsyncThread

        acquisition = asyncio.ensure_future(self._runner.run(turns.take(self._resource, *self._options)))
        try:
            grant = await asyncio.shield(acquisition)
        except asyncio.CancelledError:
            release_task = asyncio.ensure_future(self._release_late(acquisition))
            _release_tasks.add(release_task)
            release_task.add_done_callback(_release_tasks.discard)
            raise
        self._lease = _Lease(self._options[0], time.monotonic())
        self._token = grant.token
        self._renewing = asyncio.get_running_loop().create_task(self._renew())
        return AsyncTurn(AsyncThread(self._runner, self._resource.with_turn(grant.token)), grant, self._lease)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._renewing.cancel()
        try:
            await self._runner.run(turns.release(self._resource, self._token, is_complete=kind is None))
        except ThreadkeepError:
            if kind is None:
                raise

    async def _release_late(self, acquisition: asyncio.Future[turns.Grant]) -> None:
        """Releases the turn after a call was cancelled, because the server may grant the turn nevertheless."""
        with suppress(ThreadkeepError):
            await self._runner.run(turns.release(self._resource, (await acquisition).token, is_complete=False))

    async def _renew(self) -> None:
        lease = self._lease
        while not lease.is_refused:
            await asyncio.sleep(lease.pause_seconds)
            sent_at = time.monotonic()
            try:
                await self._runner.run(turns.renew(self._resource, self._token, lease.ttl_seconds))
                lease.renewed(sent_at)
            except ThreadkeepError as error:
                lease.failed(error)
