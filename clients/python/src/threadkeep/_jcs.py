"""Encodes JSON in its canonical form (JCS, RFC 8785), so that equal values have equal bytes in every language."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

MAX_INTEGER_DIGITS = 21
"""ECMAScript writes larger numbers with an exponent."""
MAX_LEADING_ZEROS = 6
"""ECMAScript writes smaller numbers with an exponent."""

_quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value: Any) -> bytes:
    """Encodes a value as UTF-8. Integers become double-precision numbers, as in ECMAScript.

    Raises `TypeError` if JSON cannot represent the value, or `ValueError` for NaN, infinity, integers beyond the range
    of a double, and lone surrogates.
    """
    return _text(value).encode()


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(key)}:{_text(value[key])}' for key in sorted(value, key=_code_units))}}}"
    raise TypeError(f"JSON cannot represent a value of type {type(value).__name__}.")


def _code_units(key: Any) -> bytes:
    if not isinstance(key, str):
        raise TypeError(f"A key of an object must be a string, not {type(key).__name__}.")
    return key.encode("utf-16-be")


def _number(value: int | float) -> str:
    """Writes a number like `Number::toString` of ECMAScript."""
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise ValueError("JSON cannot represent NaN, infinity, or a number beyond the range of a double.")
    if double == 0:
        return "0"
    sign, digits, exponent = _shortest(double)
    integer_digits = len(digits) + exponent
    if 0 <= exponent and integer_digits <= MAX_INTEGER_DIGITS:
        text = digits + "0" * exponent
    elif 0 < integer_digits <= MAX_INTEGER_DIGITS:
        text = f"{digits[:integer_digits]}.{digits[integer_digits:]}"
    elif -MAX_LEADING_ZEROS < integer_digits <= 0:
        text = f"0.{'0' * -integer_digits}{digits}"
    else:
        text = f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{integer_digits - 1:+d}"
    return sign + text


def _shortest(double: float) -> tuple[str, str, int]:
    """Returns the sign, the fewest digits that identify the number, and the exponent of the last digit."""
    decimal = Decimal(repr(double)).as_tuple()
    digits = "".join(map(str, decimal.digits))
    significant = digits.rstrip("0")
    return "-" * decimal.sign, significant, int(decimal.exponent) + len(digits) - len(significant)
