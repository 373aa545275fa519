"""Keys of entries for keys that are any text. They have the prefixes that the texts have."""

from __future__ import annotations

import re

from .._adapter import digest

MAX_BYTES = 900
_ESCAPED = re.compile("[%\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CUT = "%%"
"""Precedes the digest of a text, of which the key has only the beginning."""


def entry_key(text: str) -> str:
    """The key of an entry."""
    escaped = _escape(text)
    if len(escaped.encode()) <= MAX_BYTES:
        return f"k:{escaped}"
    return f"k:{_beginning(escaped)}{_CUT}{digest(text)}"


def entry_prefix(text: str) -> str:
    """A prefix of the keys of all entries whose texts have this prefix, and perhaps of more."""
    return f"k:{_beginning(_escape(text))}"


def is_cut(key: str) -> bool:
    """Whether a key has only the beginning of its text."""
    return _CUT in key


def text_of(key: str) -> str:
    """The text in a key that is not cut."""
    return re.sub("%([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), key.removeprefix("k:"))


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):04x}", text)


def _beginning(escaped: str) -> str:
    return escaped.encode()[:MAX_BYTES].decode(errors="ignore")
