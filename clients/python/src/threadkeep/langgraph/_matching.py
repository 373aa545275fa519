"""Selects items and namespaces like the framework's in-memory store."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import MatchCondition

ANY = "*"
_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def has_all(value: Mapping[str, Any], filter: Mapping[str, Any]) -> bool:
    return all(_matches(value.get(name), expected) for name, expected in filter.items())


def _matches(value: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        if any(name.startswith("$") for name in expected):
            return all(_compares(value, name, operand) for name, operand in expected.items())
        return isinstance(value, dict) and has_all(value, expected)
    if isinstance(expected, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(expected):
            return False
        return all(map(_matches, value, expected))
    return bool(value == expected)


def _compares(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _NUMERIC:
        raise ValueError(f"Unsupported operator: {name}")
    return _NUMERIC[name](float(value), float(operand))


def is_selected(namespace: Sequence[str], conditions: Sequence[MatchCondition]) -> bool:
    return all(_meets(namespace, condition) for condition in conditions)


def _meets(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(pattern in (ANY, label) for label, pattern in zip(labels, path, strict=True))


def literal_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    longest: tuple[str, ...] = ()
    for condition in conditions:
        path = tuple(condition.path)
        labels = path[: path.index(ANY)] if ANY in path else path
        if condition.match_type == "prefix" and len(labels) > len(longest):
            longest = labels
    return longest
