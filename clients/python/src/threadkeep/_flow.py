"""Runs flows. A flow is a generator that yields steps and receives their results. Blocking and async calls share flows.

A `Request` is sent with retries, and returns a `Response`. A list of requests is sent concurrently, and returns a list.
`Settle` is like a list, but returns errors instead of raising them. `Open` opens a streamed response. `Read` returns
the next part of that response, or empty bytes at the end. `Emit` passes an item to the iterating caller. `Call` calls
a function of the caller. If that function raises a `ThreadkeepError`, the flow can catch it; any other exception ends
the flow. `Shield` runs another flow to its end, even if the call is cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import (
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
)

from ._http.message import Request, Response
from ._resource import Resource
from ._transport import AsyncStream, AsyncTransport, Stream, SyncTransport
from .errors import ThreadkeepError

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
Res = TypeVar("Res", bound=Resource)

MAX_CONCURRENT_REQUESTS = 8

MIN_FOR_THREADS = 4
"""Minimum number of blocking requests to send in threads. Fewer requests are sent faster without starting threads."""


class Open(NamedTuple):
    """Opens a streamed response, and closes the previous one."""

    request: Request


class Read(NamedTuple):
    seconds: float


class Pause(NamedTuple):
    seconds: float


class Settle(NamedTuple):
    requests: list[Request]


class Call(NamedTuple):
    function: Callable[[Any], Any]
    argument: Any

    def perform(self) -> Any:
        try:
            return self.function(self.argument)
        except StopIteration as error:  # would look like the end of the flow
            raise RuntimeError("The function raised StopIteration.") from error


class Shield(NamedTuple):
    flow: Flow[Any]


class Emit(Generic[T]):
    __slots__ = ("item",)

    def __init__(self, item: T) -> None:
        self.item = item


Step = Request | list[Request] | Settle | Open | Read | Pause | Call | Shield
Flow = Generator[Step, Any, R]
Items = Generator[Step | Emit[T], Any, None]


class Runner:
    def __init__(self, transport: SyncTransport) -> None:
        self.transport = transport

    def run(self, flow: Flow[R]) -> R:
        try:
            step = next(flow)
            while True:
                try:
                    result = self._perform(step)
                except ThreadkeepError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def iterate(self, flow: Items[T]) -> Iterator[T]:
        """Yields the items that `flow` emits. Closing the iterator closes the open stream."""
        stream: Stream | None = None
        result: Any = None
        error: ThreadkeepError | None = None
        try:
            while True:
                try:
                    step = flow.throw(error) if error else flow.send(result)
                except StopIteration:
                    return
                result = error = None
                try:
                    if isinstance(step, Emit):
                        yield step.item
                    elif isinstance(step, Open):
                        if stream:
                            stream.close()
                        stream = None
                        stream = result = self.transport.open(step.request)
                    elif isinstance(step, Read):
                        assert stream, "a flow opens before it reads"
                        result = stream.read(step.seconds)
                    else:
                        result = self._perform(step)
                except ThreadkeepError as failure:
                    error = failure
        finally:
            if stream:
                stream.close()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Request):
            return self.transport.send(step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Settle):
            return self._send_all(self._settled, step.requests)
        if isinstance(step, Call):
            return step.perform()
        if isinstance(step, Shield):
            return self.run(step.flow)
        assert isinstance(step, list), "only flows of items have streams"
        return self._send_all(self.transport.send, step)

    def _send_all(self, send: Callable[[Request], T], requests: list[Request]) -> list[T]:
        if len(requests) < MIN_FOR_THREADS:
            return [send(request) for request in requests]
        with ThreadPoolExecutor(min(len(requests), MAX_CONCURRENT_REQUESTS)) as pool:
            return list(pool.map(send, requests))

    def _settled(self, request: Request) -> Response | ThreadkeepError:
        try:
            return self.transport.send(request)
        except ThreadkeepError as error:
            return error


_shielded: set[asyncio.Future[Any]] = set()
"""Keeps tasks that run shielded flows alive, because event loops hold only weak references to tasks."""


def _forget(task: asyncio.Future[Any]) -> None:
    _shielded.discard(task)
    if not task.cancelled():
        task.exception()  # otherwise, asyncio reports the error of a cancelled call


class AsyncRunner:
    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def run(self, flow: Flow[R]) -> R:
        try:
            step = next(flow)
            while True:
                try:
                    result = await self._perform(step)
                except ThreadkeepError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def iterate(self, flow: Items[T]) -> AsyncIterator[T]:
        stream: AsyncStream | None = None
        result: Any = None
        error: ThreadkeepError | None = None
        try:
            while True:
                try:
                    step = flow.throw(error) if error else flow.send(result)
                except StopIteration:
                    return
                result = error = None
                try:
                    if isinstance(step, Emit):
                        yield step.item
                    elif isinstance(step, Open):
                        if stream:
                            await stream.close()
                        stream = None
                        stream = result = await self.transport.open(step.request)
                    elif isinstance(step, Read):
                        assert stream, "a flow opens before it reads"
                        result = await stream.read(step.seconds)
                    else:
                        result = await self._perform(step)
                except ThreadkeepError as failure:
                    error = failure
        finally:
            if stream:
                await stream.close()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Request):
            return await self.transport.send(step)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Settle):
            return await self._send_all(self._settled, step.requests)
        if isinstance(step, Call):
            result = step.perform()
            return await result if inspect.isawaitable(result) else result
        if isinstance(step, Shield):
            return await self._finish(step.flow)
        assert isinstance(step, list), "only flows of items have streams"
        return await self._send_all(self.transport.send, step)

    async def _finish(self, flow: Flow[R]) -> R:
        task = asyncio.ensure_future(self.run(flow))
        _shielded.add(task)
        task.add_done_callback(_forget)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            await asyncio.wait([task])  # a second cancellation ends the wait, but not the task
            raise
        return task.result()

    async def _send_all(self, send: Callable[[Request], Awaitable[T]], requests: list[Request]) -> list[T]:
        if len(requests) < 2:
            return [await send(request) for request in requests]
        gate = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        failures: list[Exception] = []

        async def send_gated(request: Request) -> T:
            async with gate:
                if failures:  # sends no further requests after a failure, like a thread pool
                    raise failures[0]
                try:
                    return await send(request)
                except Exception as error:
                    failures.append(error)
                    raise

        tasks = [asyncio.ensure_future(send_gated(request)) for request in requests]
        # `return_exceptions` waits for all tasks, so that no request is in flight when the caller sees a failure
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks]

    async def _settled(self, request: Request) -> Response | ThreadkeepError:
        try:
            return await self.transport.send(request)
        except ThreadkeepError as error:
            return error


class Handle(Generic[Res]):
    def __init__(self, runner: Runner, resource: Res) -> None:
        self._runner = runner
        self._resource = resource

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._resource.name})"


class AsyncHandle(Generic[Res]):
    def __init__(self, runner: AsyncRunner, resource: Res) -> None:
        self._runner = runner
        self._resource = resource

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._resource.name})"


def blocking(flow: Callable[Concatenate[Res, P], Flow[R]]) -> Callable[Concatenate[Handle[Res], P], R]:
    @wraps(flow)
    def call(self: Handle[Res], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._runner.run(flow(self._resource, *args, **kwargs))

    return call


def awaitable(
    flow: Callable[Concatenate[Res, P], Flow[R]],
) -> Callable[Concatenate[AsyncHandle[Res], P], Coroutine[Any, Any, R]]:
    @wraps(flow)
    async def call(self: AsyncHandle[Res], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._runner.run(flow(self._resource, *args, **kwargs))

    return call


def iterating(flow: Callable[Concatenate[Res, P], Items[T]]) -> Callable[Concatenate[Handle[Res], P], Iterator[T]]:
    @wraps(flow)
    def call(self: Handle[Res], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._runner.iterate(flow(self._resource, *args, **kwargs))

    return call


def async_iterating(
    flow: Callable[Concatenate[Res, P], Items[T]],
) -> Callable[Concatenate[AsyncHandle[Res], P], AsyncIterator[T]]:
    @wraps(flow)
    def call(self: AsyncHandle[Res], /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._runner.iterate(flow(self._resource, *args, **kwargs))

    return call
