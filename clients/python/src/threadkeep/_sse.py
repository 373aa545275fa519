"""Parses server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) as they arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ._json import decode
from .errors import InvalidResponse

_MILLISECONDS = re.compile("[0-9]{1,18}")
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Message(NamedTuple):
    """A message of a stream: the lines between two blank lines."""

    type: str = ""
    data: str = ""
    id: str | None = None
    retry_ms: int | None = None

    def json(self) -> dict[str, Any]:
        try:
            value = decode(self.data.encode())
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise InvalidResponse("The event is not a JSON object.")
        return value


class SseParser:
    def __init__(self) -> None:
        self._rest = b""
        self._message: Message | None = None

    def feed(self, part: bytes) -> Iterator[Message]:
        text = self._rest + part
        line_end = b"\r" if text.endswith(b"\r") else b""  # may be the first half of a line end
        *lines, self._rest = _LINE_END.split(text[: len(text) - len(line_end)])
        self._rest += line_end
        for line in lines:
            if line:
                self._field(line.decode("utf-8", "replace"))
            elif self._message:
                yield self._message
                self._message = None

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        message = self._message or Message()
        if name == "event":
            message = message._replace(type=value)
        elif name == "data":
            message = message._replace(data=f"{message.data}\n{value}" if message.data else value)
        elif name == "id":
            message = message._replace(id=value)
        elif name == "retry" and _MILLISECONDS.fullmatch(value):
            message = message._replace(retry_ms=int(value))
        else:
            return  # a comment, or a field of a later version
        self._message = message
