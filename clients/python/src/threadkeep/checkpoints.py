from __future__ import annotations

from ._flow import AsyncHandle, Handle, awaitable, blocking
from ._flows import checkpoints
from ._resource import ThreadResource


class Checkpoints(Handle[ThreadResource]):
    """Numbered checkpoints of a thread's state and metadata."""

    create = blocking(checkpoints.create)
    list = blocking(checkpoints.listed)
    get = blocking(checkpoints.get)
    restore = blocking(checkpoints.restore)
    delete = blocking(checkpoints.delete)


class AsyncCheckpoints(AsyncHandle[ThreadResource]):
    """Numbered checkpoints of a thread's state and metadata."""

    create = awaitable(checkpoints.create)
    list = awaitable(checkpoints.listed)
    get = awaitable(checkpoints.get)
    restore = awaitable(checkpoints.restore)
    delete = awaitable(checkpoints.delete)
