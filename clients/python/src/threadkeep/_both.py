"""Connections for adapters that serve blocking and async callers with the same flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

from ._flow import AsyncRunner, Emit, Flow, Items, Runner, Settle
from ._flows.threads import by_id
from ._http.message import Request
from ._place import Place, ThreadPlace, segment
from ._settings import Settings
from ._transport import AsyncTransport, SyncTransport
from .aclient import AsyncThreadkeep
from .client import Threadkeep
from .errors import ThreadkeepError

T = TypeVar("T")
R = TypeVar("R")
B = TypeVar("B", bound="Both")

BLOCK = 32
BINARY = "application/octet-stream"
NEVER_EXPIRES = 0
"""TTL of an entry that never expires, regardless of the server's default."""


class BothConnection:
    """Runs flows for blocking and async calls. The caller's client serves one kind. The other uses new connections."""

    def __init__(self, client: Threadkeep | AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        settings = client._settings if client else Settings.of(base_url, api_key)
        given = client._runner if client else None
        timeout, max_retries = (10.0, None) if given is None else given.transport.limits
        self.root = settings.root
        self._given = given
        self._blocking = (
            given if isinstance(given, Runner) else Runner(SyncTransport(settings.origin, timeout, max_retries, None))
        )
        self._async = (
            given
            if isinstance(given, AsyncRunner)
            else AsyncRunner(AsyncTransport(settings.origin, timeout, max_retries, None))
        )

    def namespace(self, name: str) -> Place:
        return self.root.at(f"/v1/kv/{segment(name)}", repr(name))

    def thread(self, id: str, ttl_seconds: int) -> ThreadPlace:
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
        if self._async is not self._given:
            await self._async.transport.close()

    def _close_blocking(self) -> None:
        if self._blocking is not self._given:
            self._blocking.transport.close()


class Both:
    _connection: BothConnection

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
    """Runs flows concurrently, and returns their results. If one flow raises an error, all flows end."""
    results: dict[int, R] = {}
    steps: dict[int, Request | list[Request]] = {}

    def advance(number: int, answers: list[Any] | None) -> None:
        flow, asked = flows[number], steps.pop(number, None)
        error = next((answer for answer in answers or () if isinstance(answer, ThreadkeepError)), None)
        try:
            if error:
                step = flow.throw(error)
            else:
                step = flow.send(answers[0] if answers and isinstance(asked, Request) else answers)
        except StopIteration as stop:
            results[number] = stop.value
        else:
            assert isinstance(step, (Request, list)), "only flows that send requests run together"
            steps[number] = step

    for number in range(len(flows)):
        advance(number, None)
    while steps:
        asked = [(number, [step] if isinstance(step, Request) else step) for number, step in steps.items()]
        answers = iter((yield Settle([request for _, requests in asked for request in requests])))
        for number, requests in asked:
            advance(number, [next(answers) for _ in requests])
    return [results[number] for number in range(len(flows))]


def putting(
    namespace: Place, key: str, body: bytes, *, ttl_seconds: int = NEVER_EXPIRES, content_type: str = BINARY
) -> Request:
    headers = {"content-type": content_type}
    return namespace.write("PUT", f"/{segment(key)}", body, query={"ttl_seconds": ttl_seconds}, headers=headers)


def deleting(namespace: Place, key: str) -> Request:
    return namespace.write("DELETE", f"/{segment(key)}")


def in_blocks(requests: Iterator[Request]) -> Flow[None]:
    while block := list(islice(requests, BLOCK)):
        yield block
