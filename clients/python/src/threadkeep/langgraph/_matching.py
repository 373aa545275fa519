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
    return all(_matches(value.get(name), wanted) for name, wanted in filter.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and has_all(value, wanted)
    if isinstance(wanted, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(wanted):
            return False
        return all(map(_matches, value, wanted))
    return bool(value == wanted)


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
    return all(wanted in (ANY, label) for label, wanted in zip(labels, path, strict=True))


def literal_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    longest: tuple[str, ...] = ()
    for condition in conditions:
        path = tuple(condition.path)
        labels = path[: path.index(ANY)] if ANY in path else path
        if condition.match_type == "prefix" and len(labels) > len(longest):
            longest = labels
    return longest
