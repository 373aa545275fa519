"""Converts arbitrary strings to entry keys. Strings with a common prefix get keys with a common prefix."""

from __future__ import annotations

import re

from .._adapter import digest

MAX_BYTES = 900
_ESCAPED = re.compile("[%\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TRUNCATED = "%%"
"""Separates the beginning of a long string from the string's digest in a key."""


def entry_key(text: str) -> str:
    escaped = _escape(text)
    if len(escaped.encode()) <= MAX_BYTES:
        return f"k:{escaped}"
    return f"k:{_beginning(escaped)}{_TRUNCATED}{digest(text)}"


def entry_prefix(text: str) -> str:
    """Returns a prefix of the keys for all strings that begin with `text`. Other keys may have the same prefix."""
    return f"k:{_beginning(_escape(text))}"


def is_truncated(key: str) -> bool:
    return _TRUNCATED in key


def text_of(key: str) -> str:
    return re.sub("%([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), key.removeprefix("k:"))


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):04x}", text)


def _beginning(escaped: str) -> str:
    return escaped.encode()[:MAX_BYTES].decode(errors="ignore")
