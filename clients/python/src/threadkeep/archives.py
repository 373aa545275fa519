from __future__ import annotations

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import archives
from ._resource import Resource


class Archives(Handle[Resource]):
    """Lists, reads and restores ended threads while the server retains them."""

    list = iterating(archives.listed)
    get = blocking(archives.get)
    history = iterating(archives.history)
    restore = blocking(archives.restore)


class AsyncArchives(AsyncHandle[Resource]):
    """Lists, reads and restores ended threads while the server retains them."""

    list = async_iterating(archives.listed)
    get = awaitable(archives.get)
    history = async_iterating(archives.history)
    restore = awaitable(archives.restore)
