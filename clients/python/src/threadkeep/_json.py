"""Encodes JSON without optional whitespace and escapes, to save space: the server stores the bytes unchanged."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode(value: Any) -> bytes:
    """Encodes a value as UTF-8. Raises `TypeError` if JSON cannot represent it, or `ValueError` for NaN or infinity."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # lone surrogates must be escaped
        return _encode_escaped(value).encode()


def decode(body: bytes) -> Any:
    """Decodes a body. Raises `ValueError` if it is not JSON in UTF-8.

    An integer with more digits than Python converts (`sys.get_int_max_str_digits`) becomes a `Decimal`.
    """
    text = body.decode()
    try:
        return _parse(text)
    except RecursionError:  # before Python 3.12, nesting and call depth share one limit; a new thread has no deep calls
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(_parse, text).result()


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)
