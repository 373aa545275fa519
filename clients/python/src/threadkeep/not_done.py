from __future__ import annotations

from typing import Any


class _NotDone:
    def __repr__(self) -> str:
        return "NOT_DONE"


NOT_DONE: Any = _NotDone()
"""Return this from `check` if the external system does not know the key: then the tool has not run."""
