"""Connections for adapters that run the same flows (generators that yield requests) for blocking and async callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

from ._flow import AsyncRunner, Emit, Flow, Items, Runner, Settle
from ._flows.threads import by_id
from ._http.message import Request
from ._resource import Resource, ThreadResource, segment
from ._settings import Settings
from ._transport import AsyncTransport, SyncTransport
from .aclient import AsyncThreadkeep
from .client import Threadkeep
from .errors import ThreadkeepError

T = TypeVar("T")
R = TypeVar("R")
B = TypeVar("B", bound="DualAdapter")

BATCH_SIZE = 32
BINARY = "application/octet-stream"
NEVER_EXPIRES = 0
"""TTL of an entry that never expires, regardless of the server's default."""


class DualConnection:
    """Runs flows for blocking and async calls. Opens connections for calls that the caller's client cannot make."""

    def __init__(self, client: Threadkeep | AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        settings = client._settings if client else Settings.of(base_url, api_key)
        runner = client._runner if client else None
        timeout, max_retries = (10.0, None) if runner is None else runner.transport.limits
        self.root = settings.root
        self._client_runner = runner
        self._blocking = (
            runner if isinstance(runner, Runner) else Runner(SyncTransport(settings.origin, timeout, max_retries, None))
        )
        self._async = (
            runner
            if isinstance(runner, AsyncRunner)
            else AsyncRunner(AsyncTransport(settings.origin, timeout, max_retries, None))
        )

    def namespace(self, name: str) -> Resource:
        return self.root.at(f"/v1/kv/{segment(name)}", repr(name))

    def thread(self, id: str, ttl_seconds: int) -> ThreadResource:
        return by_id(self.root, id, None, ttl_seconds)

    def run(self, flow: Flow[R]) -> R:
        return self._blocking.run(flow)

    async def arun(self, flow: Flow[R]) -> R:
        return await self._async.run(flow)

    def iterate(self, flow: Items[T]) -> Iterator[T]:
        return self._blocking.iterate(flow)

    def aiterate(self, flow: Items[T]) -> AsyncIterator[T]:
        return self._async.iterate(flow)

    def close(self) -> None:
        """Closes all connections except the caller's client. Within an event loop, closes only blocking connections."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.aclose())
        else:
            self._close_blocking()

    async def aclose(self) -> None:
        self._close_blocking()
        if self._async is not self._client_runner:
            await self._async.transport.close()

    def _close_blocking(self) -> None:
        if self._blocking is not self._client_runner:
            self._blocking.transport.close()


class DualAdapter:
    _connection: DualConnection

    def close(self) -> None:
        """Closes the adapter's own connections. Idempotent. Within an event loop, await `aclose` instead."""
        self._connection.close()

    async def aclose(self) -> None:
        """Closes the adapter's own connections. Idempotent."""
        await self._connection.aclose()

    def __enter__(self: B) -> B:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self: B) -> B:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def collected(items: Items[T], where: Callable[[T], bool] | None = None, limit: int | None = None) -> Flow[list[T]]:
    found: list[T] = []
    result: object = None
    while limit is None or len(found) < limit:
        try:
            step = items.send(result)
        except StopIteration:
            break
        result = None
        if not isinstance(step, Emit):
            result = yield step
        elif where is None or where(step.item):
            found.append(step.item)
    return found


def together(flows: Sequence[Flow[R]]) -> Flow[list[R]]:
    """Runs flows concurrently, and returns their results. If one flow raises an error, stops all flows."""
    results: dict[int, R] = {}
    steps: dict[int, Request | list[Request]] = {}

    def advance(number: int, outcomes: list[Any] | None) -> None:
        flow, previous = flows[number], steps.pop(number, None)
        error = next((outcome for outcome in outcomes or () if isinstance(outcome, ThreadkeepError)), None)
        try:
            if error:
                step = flow.throw(error)
            else:
                step = flow.send(outcomes[0] if outcomes and isinstance(previous, Request) else outcomes)
        except StopIteration as stop:
            results[number] = stop.value
        else:
            assert isinstance(step, (Request, list)), "only flows that send requests run together"
            steps[number] = step

    for number in range(len(flows)):
        advance(number, None)
    while steps:
        pending = [(number, [step] if isinstance(step, Request) else step) for number, step in steps.items()]
        outcomes = iter((yield Settle([request for _, requests in pending for request in requests])))
        for number, requests in pending:
            advance(number, [next(outcomes) for _ in requests])
    return [results[number] for number in range(len(flows))]


def put_request(
    namespace: Resource, key: str, body: bytes, *, ttl_seconds: int = NEVER_EXPIRES, content_type: str = BINARY
) -> Request:
    headers = {"content-type": content_type}
    return namespace.write("PUT", f"/{segment(key)}", body, query={"ttl_seconds": ttl_seconds}, headers=headers)


def delete_request(namespace: Resource, key: str) -> Request:
    return namespace.write("DELETE", f"/{segment(key)}")


def send_in_batches(requests: Iterator[Request]) -> Flow[None]:
    while batch := list(islice(requests, BATCH_SIZE)):
        yield batch
