"""Checkpoints of threads."""

from __future__ import annotations

from ._flow import AsyncHandle, Handle, awaitable, blocking
from ._flows import checkpoints
from ._place import ThreadPlace


class Checkpoints(Handle[ThreadPlace]):
    """Saved states of a thread, under numbers."""

    create = blocking(checkpoints.create)
    list = blocking(checkpoints.listed)
    get = blocking(checkpoints.get)
    restore = blocking(checkpoints.restore)
    delete = blocking(checkpoints.delete)


class AsyncCheckpoints(AsyncHandle[ThreadPlace]):
    """Saved states of a thread, under numbers."""

    create = awaitable(checkpoints.create)
    list = awaitable(checkpoints.listed)
    get = awaitable(checkpoints.get)
    restore = awaitable(checkpoints.restore)
    delete = awaitable(checkpoints.delete)
