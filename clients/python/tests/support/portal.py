"""Wraps the async client in blocking methods, so that tests for the blocking client can use it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from typing import Any

from threadkeep import AsyncTurn
from threadkeep._flow import AsyncHandle


class Portal:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def stop(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def blocking(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            return self.blocking(self.run(value))
        if inspect.isasyncgen(value):
            return self._items(value)
        if isinstance(value, AsyncHandle | AsyncTurn) or hasattr(value, "__aenter__"):
            return _Blocking(self, value)
        return value

    def _items(self, items: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self.run(anext(items))
                except StopAsyncIteration:
                    return
        finally:
            self.run(items.aclose())


class _Blocking:
    def __init__(self, portal: Portal, wrapped: Any) -> None:
        self._portal = portal
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if not inspect.ismethod(found):
            return self._portal.blocking(found)
        return lambda *args, **kwargs: self._portal.blocking(found(*args, **kwargs))

    def __repr__(self) -> str:
        return repr(self._wrapped)

    def __iter__(self) -> Iterator[Any]:
        return self._portal.blocking(self._wrapped.__aiter__())  # type: ignore[no-any-return]

    def __enter__(self) -> Any:
        return self._portal.blocking(self._portal.run(self._wrapped.__aenter__()))

    def __exit__(self, *error: Any) -> None:
        self._portal.run(self._wrapped.__aexit__(*error))
