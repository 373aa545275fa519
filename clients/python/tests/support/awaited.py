from __future__ import annotations

from typing import Any

from support.portal import Portal


class Awaited:
    """Wraps an object. The wrapper's blocking methods run the object's async methods: `get` runs `aget`."""

    def __init__(self, wrapped: Any, portal: Portal) -> None:
        self._wrapped = wrapped
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = getattr(self._wrapped, f"a{name}")(*args, **kwargs)
            return self._portal.run(_collect(answer) if hasattr(answer, "__aiter__") else answer)

        return call


async def _collect(items: Any) -> list[Any]:
    return [item async for item in items]
