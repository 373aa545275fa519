"""Distinguishes omitted parameters from None. Rejects None, because it is often the result of a failed lookup."""

from __future__ import annotations

from typing import Any


class _Omitted:
    def __repr__(self) -> str:
        return "omitted"


OMITTED: Any = _Omitted()


def passed(**parameters: Any) -> dict[str, Any]:
    """Returns the passed parameters. Raises `TypeError` for None."""
    for name, value in parameters.items():
        if value is None:
            raise TypeError(f"{name} is None: leave it out, or pass a value.")
    return {name: value for name, value in parameters.items() if value is not OMITTED}


def not_none(**parameters: Any) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}
