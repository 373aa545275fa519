"""Owners of threads."""

from __future__ import annotations

from ._flow import AsyncHandle, Handle, awaitable, blocking
from ._flows import owners
from ._place import Place


class Owners(Handle[Place]):
    """The people or companies to whom threads belong."""

    get = blocking(owners.get)
    erase = blocking(owners.erase)


class AsyncOwners(AsyncHandle[Place]):
    """The people or companies to whom threads belong."""

    get = awaitable(owners.get)
    erase = awaitable(owners.erase)
