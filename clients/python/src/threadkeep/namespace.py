from __future__ import annotations

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import namespaces
from ._resource import Resource


class Namespace(Handle[Resource]):
    """A namespace of key-value entries, which are bytes with a content type. Independent of threads."""

    get = blocking(namespaces.get)
    put = blocking(namespaces.put)
    delete = blocking(namespaces.delete)
    keys = iterating(namespaces.keys)
    entries = iterating(namespaces.entries)
    get_many = blocking(namespaces.get_many)
    put_many = blocking(namespaces.put_many)
    configure = blocking(namespaces.configure)
    clear = blocking(namespaces.clear)


class AsyncNamespace(AsyncHandle[Resource]):
    """A namespace of key-value entries, which are bytes with a content type. Independent of threads."""

    get = awaitable(namespaces.get)
    put = awaitable(namespaces.put)
    delete = awaitable(namespaces.delete)
    keys = async_iterating(namespaces.keys)
    entries = async_iterating(namespaces.entries)
    get_many = awaitable(namespaces.get_many)
    put_many = awaitable(namespaces.put_many)
    configure = awaitable(namespaces.configure)
    clear = awaitable(namespaces.clear)
