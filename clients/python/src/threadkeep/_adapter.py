"""What all adapters share: their client, and names for what frameworks name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypeVar

from ._flow import AsyncRunner, Emit, Flow, Items, Runner, Settle
from ._http.message import Request
from ._place import Place, segment
from ._settings import Settings
from ._transport import AsyncTransport, SyncTransport
from .aclient import AsyncThreadkeep
from .client import Threadkeep
from .errors import ThreadkeepError

T = TypeVar("T")
R = TypeVar("R")

TTL_SECONDS = 2_592_000
"""How long an adapter's threads live without use: 30 days."""

MAX_PREFIX_CHARACTERS = 20


class AsyncConnection:
    """The client of an adapter: the caller's, or one of its own, which it closes."""

    def __init__(self, client: AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or AsyncThreadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    async def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        if self._is_own:
            await self.client.close()


class Connection:
    """The same, blocking."""

    def __init__(self, client: Threadkeep | None, base_url: str | None, api_key: str | None) -> None:
        self.client = client or Threadkeep(base_url, api_key=api_key)
        self._is_own = client is None

    def close(self) -> None:
        """Closes the client if it is the adapter's own. May be called twice."""
        if self._is_own:
            self.client.close()


class FlowConnection:
    """Runs the flows of an adapter that has blocking and async methods.

    A client of either kind serves one half; the other half gets connections of its own to the same server.
    """

    def __init__(self, client: Threadkeep | AsyncThreadkeep | None, base_url: str | None, api_key: str | None) -> None:
        settings = client._settings if client else Settings.of(base_url, api_key)
        given = client._runner if client else None
        timeout, max_retries = (10.0, 2) if given is None else given.transport.limits
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
        """A namespace of entries."""
        return Place(f"/v1/kv/{segment(name)}", self.root.headers, repr(name))

    def run(self, flow: Flow[R]) -> R:
        """The result of a flow."""
        return self._blocking.run(flow)

    async def arun(self, flow: Flow[R]) -> R:
        """The same, awaited."""
        return await self._async.run(flow)

    def iterate(self, flow: Items[T]) -> Iterator[T]:
        """The items of a flow."""
        return self._blocking.iterate(flow)

    def aiterate(self, flow: Items[T]) -> AsyncIterator[T]:
        """The same with `async for`."""
        return self._async.iterate(flow)

    def close(self) -> None:
        """Closes all connections but those of the caller's client. May be called twice.

        In a running event loop, it closes only the blocking connections: await `aclose` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.aclose())
        else:
            self._close_blocking()

    async def aclose(self) -> None:
        """Closes all connections but those of the caller's client. May be called twice."""
        self._close_blocking()
        if self._async is not self._given:
            await self._async.transport.close()

    def _close_blocking(self) -> None:
        if self._blocking is not self._given:
            self._blocking.transport.close()


def collected(items: Items[T]) -> Flow[list[T]]:
    """The items of a flow in a list, for another flow."""
    found: list[T] = []
    result: object = None
    try:
        while True:
            step = items.send(result)
            result = None
            if isinstance(step, Emit):
                found.append(step.item)
            else:
                result = yield step
    except StopIteration:
        return found


def together(flows: Sequence[Flow[R]]) -> Flow[list[R]]:
    """The results of flows that send requests, each as if it were alone, but concurrently.

    An error that a flow does not handle ends them all.
    """
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


def digest(*parts: str) -> str:
    """48 hex digits that name these texts, in this order: `("a", "bc")` differs from `("ab", "c")`."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()[:48]


def thread_id(prefix: str, *parts: str) -> str:
    """The ID of the thread for these texts."""
    return f"thrd_{digest(prefix, *parts)}"


def namespace_name(prefix: str, *parts: str) -> str:
    """The namespace of the entries for these texts."""
    return f"{prefix}.{digest(prefix, *parts)[:40]}"


def checked_prefix(prefix: str) -> str:
    """The prefix, if it can begin the names of namespaces. Raises `ValueError` if it cannot."""
    if not 1 <= len(prefix) <= MAX_PREFIX_CHARACTERS or not all("!" <= c <= "~" for c in prefix):
        raise ValueError(f"A prefix has 1 to {MAX_PREFIX_CHARACTERS} visible ASCII characters.")
    return prefix


def missing(extra: str, error: ImportError) -> ImportError:
    """Says which extra installs the framework that an adapter is for."""
    return ImportError(f'{error}. Install the framework with: pip install "threadkeep[{extra}]"')
