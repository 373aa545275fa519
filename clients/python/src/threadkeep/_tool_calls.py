from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ._jcs import canonical
from ._resource import new_key
from .models import Effect


class ToolCall(NamedTuple):
    """A tool call that must run once."""

    id: str
    tool: str
    arguments: Any
    run: Callable[[Effect], Any]
    check: Callable[[str], Any] | None
    idempotent: bool
    retry: bool

    @property
    def hash(self) -> str:
        return hashlib.sha256(canonical(self.arguments)).hexdigest()


@dataclass
class Progress:
    """The progress of a turn with one tool call."""

    key: str = field(default_factory=new_key)
    """Idempotency key of the requests that begin the effect. The server grants a running attempt again to this key."""
    attempt: int = 0
    """The attempt for which `run` was called."""
    is_open: bool = False
    """Whether the server may have granted an attempt to `key` that is not settled."""


class ToolCalls:
    """Tool calls of a turn that raised and may have left an attempt open. The server considers it running.

    A later call with the same ID therefore continues the earlier one. Otherwise, it would wait until the turn ends.
    If several calls lose their responses, none of them knows whether it has the attempt. A later call tries each key.
    """

    def __init__(self, is_lost: Callable[[], bool]) -> None:
        self.is_lost = is_lost
        self._raised: dict[str, list[Progress]] = {}

    @contextmanager
    def progress_of(self, id: str) -> Iterator[Progress]:
        progress = self._pop(id) or Progress()
        try:
            yield progress
        except BaseException:
            if progress.is_open:
                self._raised.setdefault(id, []).append(progress)
            raise

    def take_over(self, id: str, progress: Progress) -> bool:
        """Continues a call that raised in another branch. Returns whether there is one."""
        raised = self._pop(id)
        if raised:
            progress.key, progress.attempt, progress.is_open = raised.key, raised.attempt, raised.is_open
        return raised is not None

    def _pop(self, id: str) -> Progress | None:
        with suppress(KeyError, IndexError):  # without a check, because other threads may run the same call
            return self._raised[id].pop()
        return None
