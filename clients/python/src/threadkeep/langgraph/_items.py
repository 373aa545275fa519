from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from .._adapter import digest
from .._json import decode, encode
from ..models import time_of

MAX_LABEL_BYTES = 100
_ESCAPED = re.compile(r"[%/\x00-\x1f\x7f-\x9f]")
_DIGEST = "%%"
"""Prefix of a digest. A digest replaces a label that is too long or not valid UTF-8."""


class StoredItem(NamedTuple):
    """A decoded entry. `ttl` is in minutes."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None

    def pack(self) -> bytes:
        times = {"created_at": self.created_at.isoformat(), "updated_at": self.updated_at.isoformat()}
        return encode({**self._asdict(), **times})

    @classmethod
    def unpack(cls, body: bytes) -> StoredItem:
        data: Mapping[str, Any] = decode(body)
        times = {name: time_of(data[name]) for name in ("created_at", "updated_at")}
        return cls(**{**data, **times, "namespace": tuple(data["namespace"])})


def item_key(namespace: tuple[str, ...], key: str) -> str:
    return f"{'/'.join(map(_escaped, namespace))}//{digest(key)}"


def prefix_of(labels: tuple[str, ...]) -> str:
    return "".join(f"{_escaped(label)}/" for label in labels)


def namespace_in(entry_key: str) -> tuple[str, ...] | None:
    """Returns the namespace that an entry's key contains, or None if a digest replaces one of the labels."""
    path = entry_key.rpartition("//")[0]
    if _DIGEST in path:
        return None
    return tuple(re.sub("%(..)", lambda found: chr(int(found[1], 16)), label) for label in path.split("/") if label)


def _escaped(label: str) -> str:
    escaped = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02x}", label)
    try:
        is_long = len(escaped.encode()) > MAX_LABEL_BYTES
    except UnicodeEncodeError:
        is_long = True
    return f"{_DIGEST}{digest(label)}" if is_long else escaped
