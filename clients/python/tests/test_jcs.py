"""Tests the canonical form with the examples of RFC 8785."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from threadkeep._jcs import canonical

NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
"""Doubles in hexadecimal, from appendix B of RFC 8785."""


@pytest.mark.parametrize("double", NUMBERS)
def test_numbers_are_written_as_in_ecmascript(double: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(double))
    assert canonical(number).decode() == NUMBERS[double]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-7, "-7"),
        (10, "10"),
        (1.0, "1"),
        (100.5, "100.5"),
        (10**21, "1e+21"),
        (2**53 + 1, "9007199254740992"),
    ],
)
def test_integers_are_written_as_doubles(number: float, text: str) -> None:
    assert canonical(number).decode() == text


def test_the_document_of_the_standard_has_its_canonical_form() -> None:
    document = r"""{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"""
    expected = (
        r'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'
    )
    assert canonical(json.loads(document)).decode() == expected


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    keys = ["\r", "1", "\u0080", "ö", "€", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical({key: 0 for key in sorted(keys)}))) == keys


def test_strings_have_only_the_necessary_escapes() -> None:
    assert canonical("\b\t\n\f\r\x1f\x7f\u2028/é").decode() == '"\\b\\t\\n\\f\\r\\u001f\x7f\u2028/é"'


def test_a_tuple_is_an_array_and_an_empty_value_stays() -> None:
    assert canonical(({}, [], "", ())) == b'[{},[],"",[]]'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "\ud800", {"\udfff": 1}, [{"a": math.nan}]])
def test_a_value_without_a_canonical_form_is_rejected(value: Any) -> None:
    with pytest.raises(ValueError):
        canonical(value)


@pytest.mark.parametrize("value", [object(), {1: 2}, b"bytes", {"a": {1, 2}}])
def test_a_value_of_another_type_is_rejected(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical(value)
