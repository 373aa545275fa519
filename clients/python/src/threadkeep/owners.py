from __future__ import annotations

from ._flow import AsyncHandle, Handle, awaitable, blocking
from ._flows import owners
from ._resource import Resource


class Owners(Handle[Resource]):
    """Operations on the users or companies that own threads."""

    get = blocking(owners.get)
    erase = blocking(owners.erase)


class AsyncOwners(AsyncHandle[Resource]):
    """Operations on the users or companies that own threads."""

    get = awaitable(owners.get)
    erase = awaitable(owners.erase)
