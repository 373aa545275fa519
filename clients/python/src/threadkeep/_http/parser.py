"""Parses HTTP/1.1 responses (RFC 9112) incrementally."""

from __future__ import annotations

import re

from ..errors import TransportError

MAX_HEAD_BYTES = 65_536
_MAX_CHUNK_LINE_BYTES = 1_024
_LENGTH = re.compile("[0-9]{1,18}")


class ResponseParser:
    """Parses one response. `status` and `headers` are set once `has_head` is true."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._buffer = bytearray()
        self._body = bytearray()
        self._remaining: int | None = 0  # bytes of the body or chunk; None if the body ends with the connection
        self._is_chunked = False
        self._in_line_end = False
        self._in_trailer = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.is_complete = False
        self.can_reuse = True

    def feed(self, data: bytes) -> None:
        self._buffer += data
        if not self.has_head and not self._parse_head():
            return
        if self._is_chunked:
            while not self.is_complete and self._parse_chunk():
                pass
        else:
            self._parse_body()
        if self.is_complete and self._buffer:
            self.can_reuse = False  # unsolicited data

    def end(self) -> None:
        if self.has_head and self._remaining is None:
            self.is_complete = True
        if not self.is_complete:
            raise TransportError("The connection was cut before the response was complete.", sent=True)

    def take(self) -> bytes:
        part = bytes(self._body)
        self._body.clear()
        return part

    @property
    def body_bytes(self) -> int:
        return len(self._body)

    def _parse_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise _not_http()
            return False
        status_line, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, _, rest = status_line.partition(" ")
        if not version.startswith("HTTP/1.") or not (rest[:3].isascii() and rest[:3].isdigit()):
            raise _not_http()
        self.status = int(rest[:3])
        if self.status < 200:  # an interim response
            return self._parse_head()
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.has_head = True
        self._begin_body(version)
        return True

    def _begin_body(self, version: str) -> None:
        connection = self.headers.get("connection", "").lower()
        self.can_reuse = version == "HTTP/1.1" and "close" not in connection
        if self._method == "HEAD" or self.status in (204, 304):
            self._remaining = 0
        elif "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].lower() != "chunked":
                raise _not_http()
            self._is_chunked = True
        elif (length := self.headers.get("content-length")) is not None:
            if not _LENGTH.fullmatch(length):
                raise _not_http()
            self._remaining = int(length)
        else:
            self._remaining = None
            self.can_reuse = False

    def _parse_body(self) -> None:
        if self._remaining is None:
            self._move(len(self._buffer))
        else:
            self._remaining -= self._move(self._remaining)
            self.is_complete = self._remaining == 0

    def _parse_chunk(self) -> bool:
        if self._remaining:
            self._remaining -= self._move(self._remaining)
            self._in_line_end = not self._remaining
            if self._remaining:
                return False
        if self._in_line_end:
            if len(self._buffer) < 2:
                return False
            if self._buffer[:2] != b"\r\n":
                raise _not_http()
            del self._buffer[:2]
            self._in_line_end = False
        line = self._take_line()
        if line is None:
            return False
        if self._in_trailer:
            self.is_complete = not line
            return True
        try:
            self._remaining = int(line.partition(b";")[0], 16)
        except ValueError:
            raise _not_http() from None
        if self._remaining < 0:
            raise _not_http()
        self._in_trailer = self._remaining == 0
        return True

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_CHUNK_LINE_BYTES:
                raise _not_http()
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _move(self, max_bytes: int) -> int:
        part = self._buffer[:max_bytes]
        del self._buffer[:max_bytes]
        self._body += part
        return len(part)


def _not_http() -> TransportError:
    return TransportError("The response is not HTTP.", sent=True)
