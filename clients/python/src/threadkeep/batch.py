from __future__ import annotations

from types import TracebackType
from typing import Any

from . import operations as ops
from ._flow import AsyncRunner, Flow, Runner
from ._flows import state
from ._omitted import OMITTED
from ._resource import ThreadResource
from .models import Receipt


class Batch:
    """Collects operations, and sends them as one merge if the `with` block ends without an exception."""

    def __init__(self, if_match: str | int | None, idempotency_key: str | None) -> None:
        self.operations: list[ops.Operation] = []
        self.receipt: Receipt | None = None
        """Receipt of the merge. None until the `with` block ends, or if the batch is empty."""
        self._if_match = if_match
        self._idempotency_key = idempotency_key

    def set(self, key: str, value: Any) -> None:
        """Sets a key."""
        self.operations.append(ops.set(key, value))

    def delete(self, key: str) -> None:
        """Deletes a key."""
        self.operations.append(ops.delete(key))

    def clear(self) -> None:
        """Clears the state."""
        self.operations.append(ops.clear())

    def push(self, key: str, value: Any, max_records: int | None = None) -> None:
        """Appends a value to an array."""
        self.operations.append(ops.push(key, value, max_records))

    def pop(self, key: str, count: int = 1) -> None:
        """Removes the newest elements of an array."""
        self.operations.append(ops.pop(key, count))

    def increment(self, key: str, by: int = 1) -> None:
        """Adds to an integer."""
        self.operations.append(ops.increment(key, by))

    def append(self, value: Any, id: str | None = None) -> None:
        """Appends an item to the thread's history."""
        self.operations.append(ops.append(value, id))

    def settle(self, effect: str, *, result: Any = OMITTED, error: Any = OMITTED, fence: str | None = None) -> None:
        """Records the result or error of a tool call. Without a fence, the effect must be in doubt."""
        self.operations.append(ops.settle(effect, result=result, error=error, fence=fence))

    def _merge(self, resource: ThreadResource) -> Flow[Receipt]:
        return state.merge(resource, self.operations, if_match=self._if_match, idempotency_key=self._idempotency_key)


class BatchContext:
    def __init__(self, runner: Runner, resource: ThreadResource, if_match: str | int | None, key: str | None) -> None:
        self._runner = runner
        self._resource = resource
        self._conditions = (if_match, key)

    def __enter__(self) -> Batch:
        self._batch = Batch(*self._conditions)
        return self._batch

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._batch.operations:
            self._batch.receipt = self._runner.run(self._batch._merge(self._resource))


class AsyncBatchContext:
    def __init__(
        self, runner: AsyncRunner, resource: ThreadResource, if_match: str | int | None, key: str | None
    ) -> None:
        self._runner = runner
        self._resource = resource
        self._conditions = (if_match, key)

    async def __aenter__(self) -> Batch:
        self._batch = Batch(*self._conditions)
        return self._batch

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._batch.operations:
            self._batch.receipt = await self._runner.run(self._batch._merge(self._resource))
