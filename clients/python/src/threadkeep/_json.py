"""JSON as the server stores it: compact, and with as few bytes as possible."""

from __future__ import annotations

import json
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode(value: Any) -> bytes:
    """The value as UTF-8. Raises `TypeError` for what is not JSON, and `ValueError` for NaN and infinity."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # lone surrogates exist only as escapes
        return _encode_escaped(value).encode()


def decode(body: bytes) -> Any:
    """The value of a body. Raises `ValueError` if it is not JSON in UTF-8."""
    return json.loads(body.decode())
