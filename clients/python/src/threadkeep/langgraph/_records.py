"""Keys and bodies of checkpoint entries. Stores names as bytes, because they may contain lone surrogates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import ormsgpack

from .._adapter import digest

Typed = tuple[str, bytes]

FORMAT = 1
_INVERTED = bytes(range(255, -1, -1))


class Reference(NamedTuple):
    """Refers to a channel value that is too large for its checkpoint's entry."""

    type: str
    version: str
    parts: int


class Record(NamedTuple):
    """A stored checkpoint without its writes and large values."""

    thread_id: str
    ns: str
    id: str
    parent: str | None
    checkpoint: Typed
    metadata: Typed
    values: dict[str, Typed | Reference]

    def pack(self) -> bytes:
        parent = None if self.parent is None else _bytes(self.parent)
        values = [(_bytes(channel), *value) for channel, value in self.values.items()]
        names = (_bytes(self.thread_id), _bytes(self.ns), _bytes(self.id), parent)
        return ormsgpack.packb((FORMAT, *names, self.checkpoint, self.metadata, values))

    @classmethod
    def unpack(cls, body: bytes) -> Record:
        _, thread_id, ns, id, parent, checkpoint, metadata, values = ormsgpack.unpackb(body)
        return cls(
            _text(thread_id),
            _text(ns),
            _text(id),
            None if parent is None else _text(parent),
            tuple(checkpoint),
            tuple(metadata),
            {_text(channel): _value(rest) for channel, *rest in values},
        )


class Write(NamedTuple):
    """One write of a task. Writes sort by path, task and index, as in a running LangGraph step."""

    task_path: str
    task_id: str
    idx: int
    channel: str
    type: str
    data: bytes


def pack_writes(writes: Iterable[Write]) -> bytes:
    return ormsgpack.packb(
        [(w.idx, _bytes(w.task_id), _bytes(w.channel), w.type, w.data, _bytes(w.task_path)) for w in writes]
    )


def unpack_writes(body: bytes) -> list[Write]:
    return [
        Write(_text(path), _text(task), idx, _text(channel), type, data)
        for idx, task, channel, type, data, path in ormsgpack.unpackb(body)
    ]


def checkpoints_key(ns: str, id: str | None = None) -> str:
    """Returns a checkpoint's key. Newer checkpoints sort first. Without `id`, returns the key prefix of `ns`."""
    return f"c/{_short(ns)}/{'' if id is None else inverted(id)}"


def writes_key(ns: str, id: str, task_id: str | None = None) -> str:
    """Returns the key of a task's writes. Without `task_id`, returns the key prefix of a checkpoint's writes."""
    return f"w/{_short(ns)}/{inverted(id)}/{'' if task_id is None else _short(task_id)}"


def blob_keys(ns: str, channel: str, value: Reference) -> list[str]:
    return [f"b/{_short(ns)}/{_short(channel)}/{value.version}/{part}" for part in range(value.parts)]


def inverted(id: str) -> str:
    """Converts an ID to a string. The strings sort in the reverse order of the IDs."""
    return f"{_bytes(id).translate(_INVERTED).hex()}~"


def _short(name: str) -> str:
    return digest(name)[:16]


def _value(rest: list[Any]) -> Typed | Reference:
    return Reference(*rest) if len(rest) == len(Reference._fields) else tuple(rest)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
