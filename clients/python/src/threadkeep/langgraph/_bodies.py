"""Stores bodies of any size in entries of up to 1 MiB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import ormsgpack

from .._dual import put_request
from .._flow import Flow
from .._flows.namespaces import get, get_many
from .._resource import Resource, new_key
from ..errors import ThreadkeepError

PART_BYTES = 900_000
_WHOLE, _IN_PARTS = b"\0", b"\1"


class ValuesDeleted(ThreadkeepError):
    """An entry, or data that the entry refers to, was deleted during the read."""

    def __init__(self) -> None:
        super().__init__("A checkpoint refers to missing values: they were deleted separately.")


def parts_of(data: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(data), 1), PART_BYTES):
        yield data[start : start + PART_BYTES]


def body_for(resource: Resource, key: str, data: bytes) -> Flow[bytes]:
    """Returns the body for the entry `key`. If `data` is large, first stores the data in separate entries."""
    if len(data) <= PART_BYTES:
        return _WHOLE + data
    token, parts = new_key(), list(parts_of(data))
    yield list(map(put_request, [resource] * len(parts), _part_keys(key, token, len(parts)), parts))
    return _IN_PARTS + ormsgpack.packb((token, len(parts)))


def assemble(resource: Resource, bodies: Mapping[str, bytes]) -> Flow[dict[str, bytes]]:
    keys_of_parts = {
        key: _part_keys(key, *ormsgpack.unpackb(body[1:])) for key, body in bodies.items() if body[:1] == _IN_PARTS
    }
    parts = yield from read_parts(resource, [key for keys in keys_of_parts.values() for key in keys])
    return {
        key: b"".join(parts[part] for part in keys_of_parts[key]) if key in keys_of_parts else body[1:]
        for key, body in bodies.items()
    }


def read_parts(resource: Resource, keys: list[str]) -> Flow[dict[str, bytes]]:
    if len(keys) == 1:  # a single entry is read as raw bytes, at half the cost of JSON
        entry = yield from get(resource, keys[0])
        entries = {keys[0]: entry} if entry else {}
    else:
        entries = yield from get_many(resource, keys)
    if len(entries) < len(set(keys)):
        raise ValuesDeleted
    return {key: entry.body for key, entry in entries.items()}


def _part_keys(key: str, token: str, parts: int) -> list[str]:
    return [f"v/{key}/{token}/{part}" for part in range(parts)]
