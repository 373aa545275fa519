"""Checks the owner of a thread before the first request to the thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, TypeVar

from ._flow import AsyncRunner, Flow, Items, Runner, Step
from ._flows.receipts import done, received
from ._json import encode
from ._resource import Resource, ThreadResource, without_signature
from .errors import Conflict, Forbidden

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")


class OwnerCheck:
    def __init__(self, thread: ThreadResource, owner: str) -> None:
        self._thread = thread
        self._owner = owner
        self._has_passed = False

    def before(self, flow: Generator[S, Any, R]) -> Generator[S | Step, Any, R]:
        """Runs `flow`. Before the first flow, runs the check."""
        if not self._has_passed:
            yield from self._run()
            self._has_passed = True
        return (yield from flow)

    def _run(self) -> Flow[None]:
        thread = self._thread
        init = {"id": without_signature(thread.id), "owner": self._owner, **thread.ttl}
        caller = Resource("", thread.headers, has_login=thread.has_login)
        while True:
            info = yield from received(thread.read("", {"peek": True}))
            if info["exists"]:
                if info.get("owner") != self._owner:
                    raise Forbidden(403, {"code": "not_the_owner", "detail": "This thread has another owner."})
                return
            try:
                return (yield from done(caller.write("POST", "/v1/threads", encode(init))))
            except Conflict as error:
                # another request has created the thread; checks that thread
                if error.code != "thread_exists":
                    raise


class OwnerRunner(Runner):
    def __init__(self, runner: Runner, check: OwnerCheck) -> None:
        super().__init__(runner.transport)
        self._check = check

    def run(self, flow: Flow[R]) -> R:
        return super().run(self._check.before(flow))

    def iterate(self, flow: Items[T]) -> Iterator[T]:
        return super().iterate(self._check.before(flow))


class AsyncOwnerRunner(AsyncRunner):
    def __init__(self, runner: AsyncRunner, check: OwnerCheck) -> None:
        super().__init__(runner.transport)
        self._check = check

    async def run(self, flow: Flow[R]) -> R:
        return await super().run(self._check.before(flow))

    def iterate(self, flow: Items[T]) -> AsyncIterator[T]:
        return super().iterate(self._check.before(flow))
