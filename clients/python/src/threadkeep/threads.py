from __future__ import annotations

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import threads, transfer
from ._resource import Resource
from .thread import async_opening, opening


class Threads(Handle[Resource]):
    """The threads of a server."""

    create = opening(threads.create)
    list = iterating(threads.listed)
    import_document = blocking(transfer.import_document)
    export_all = iterating(transfer.export_all)


class AsyncThreads(AsyncHandle[Resource]):
    """The threads of a server."""

    create = async_opening(threads.create)
    list = async_iterating(threads.listed)
    import_document = awaitable(transfer.import_document)
    export_all = async_iterating(transfer.export_all)
