from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import history
from ._resource import ThreadResource
from .models import HistoryItem


class History(Handle[ThreadResource]):
    """A thread's history: a list of JSON values, separate from the state. Iterating reads the list page by page."""

    append = blocking(history.append)
    append_many = blocking(history.append_many)
    items = iterating(history.items)
    latest = blocking(history.latest)
    take = blocking(history.take)
    compact = blocking(history.compact)
    segments = blocking(history.segments)
    segment = iterating(history.segment_items)
    delete = blocking(history.delete)
    clear = blocking(history.clear)

    def __iter__(self) -> Iterator[HistoryItem]:
        return self.items()


class AsyncHistory(AsyncHandle[ThreadResource]):
    """A thread's history: a list of JSON values, separate from the state. Iterating reads the list page by page."""

    append = awaitable(history.append)
    append_many = awaitable(history.append_many)
    items = async_iterating(history.items)
    latest = awaitable(history.latest)
    take = awaitable(history.take)
    compact = awaitable(history.compact)
    segments = awaitable(history.segments)
    segment = async_iterating(history.segment_items)
    delete = awaitable(history.delete)
    clear = awaitable(history.clear)

    def __aiter__(self) -> AsyncIterator[HistoryItem]:
        return self.items()
