"""Stores each LangGraph thread in its own namespace."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from typing import NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from .._adapter import namespace_name
from .._dual import DualConnection, collected
from .._flow import Flow
from .._flows.namespaces import namespaces
from .._resource import Resource
from ._records import Reference

MAX_STORED_VALUES = 10_000
RUNS, STORE, CACHE = SPACES = ("runs", "store", "cache")
"""Namespaces that do not store a thread."""


def space_name(prefix: str, space: str) -> str:
    return namespace_name(prefix, space, "")


class StoredValueCache:
    """Remembers large values that are already stored, so that a later checkpoint does not serialize them again.

    Relies on the fact that equal versions of a channel have equal values. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._references: OrderedDict[tuple[str, str, str, str], Reference] = OrderedDict()

    def add(self, resource: Resource, ns: str, channel: str, value: Reference) -> None:
        with self._lock:
            self._references[resource.name, ns, channel, value.version] = value
            if len(self._references) > MAX_STORED_VALUES:
                self._references.popitem(last=False)

    def get(self, resource: Resource, ns: str, channel: str, version: str) -> Reference | None:
        return self._references.get((resource.name, ns, channel, version))

    def forget(self, resource: Resource) -> None:
        with self._lock:
            for key in [key for key in self._references if key[0] == resource.name]:
                del self._references[key]


class SavedThread(NamedTuple):
    resource: Resource
    serde: SerializerProtocol
    stored_values: StoredValueCache


class SavedThreads:
    def __init__(self, connection: DualConnection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix
        self._stored_values = StoredValueCache()
        self.runs = connection.namespace(space_name(prefix, RUNS))
        """Index that maps each run to the threads with checkpoints of that run."""

    def thread(self, id: str, serde: SerializerProtocol) -> SavedThread:
        return self._at(namespace_name(self._prefix, id), serde)

    def all(self, serde: SerializerProtocol) -> Flow[list[SavedThread]]:
        is_ours = re.compile(re.escape(self._prefix) + r"\.[0-9a-f]{40}").fullmatch
        reserved = {space_name(self._prefix, space) for space in SPACES}
        found = yield from collected(namespaces(self._connection.root))
        names = [info.namespace for info in found if is_ours(info.namespace) and info.namespace not in reserved]
        return [self._at(name, serde) for name in names]

    def _at(self, namespace: str, serde: SerializerProtocol) -> SavedThread:
        return SavedThread(self._connection.namespace(namespace), serde, self._stored_values)
