"""Operations of a merge: `thread.merge([ops.push("messages", message), ops.increment("turns")])`."""

from __future__ import annotations

from typing import Any

from ._omitted import OMITTED

Operation = dict[str, Any]


def set(key: str, value: Any) -> Operation:
    """Sets a key."""
    return {"op": "set", "key": key, "value": value}


def delete(key: str) -> Operation:
    """Deletes a key."""
    return {"op": "delete", "key": key}


def clear() -> Operation:
    """Clears the state."""
    return {"op": "clear"}


def push(key: str, value: Any, max_records: int | None = None) -> Operation:
    """Appends a value to an array, and keeps the newest `max_records` values."""
    operation: Operation = {"op": "push", "key": key, "value": value}
    if max_records is not None:
        operation["max_records"] = max_records
    return operation


def pop(key: str, count: int = 1) -> Operation:
    """Removes the newest elements of an array. `values` in the result has the removed elements, oldest first."""
    return {"op": "pop", "key": key, "count": count}


def increment(key: str, by: int = 1) -> Operation:
    """Adds to an integer."""
    return {"op": "increment", "key": key, "by": by}


def append(value: Any, id: str | None = None) -> Operation:
    """Appends an item to the thread's history, atomically with the merge's changes to the state."""
    operation: Operation = {"op": "append", "value": value}
    if id is not None:
        operation["id"] = id
    return operation


def settle(effect: str, *, result: Any = OMITTED, error: Any = OMITTED, fence: str | None = None) -> Operation:
    """Records the result or error of a tool call. Without a fence, the effect must be in doubt."""
    if (result is OMITTED) == (error is OMITTED):
        raise TypeError("Pass either a result or an error.")
    operation: Operation = {"op": "settle", "effect": effect}
    operation |= {"error": error} if result is OMITTED else {"result": result}
    if fence is not None:
        operation["fence"] = fence
    return operation
