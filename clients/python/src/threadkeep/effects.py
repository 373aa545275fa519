from __future__ import annotations

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import effects
from ._resource import ThreadResource


class Effects(Handle[ThreadResource]):
    """A thread's effects: the record of each tool call that `turn.effect` has begun."""

    get = blocking(effects.get)
    list = iterating(effects.listed)


class AsyncEffects(AsyncHandle[ThreadResource]):
    """A thread's effects: the record of each tool call that `turn.effect` has begun."""

    get = awaitable(effects.get)
    list = async_iterating(effects.listed)
