"""Exports and imports threads as JSON documents. Documents are strings, because parsing could change numbers."""

from __future__ import annotations

import codecs
from typing import Any

from .._flow import Emit, Flow, Items, Open, Read
from .._http.message import Response
from .._omitted import OMITTED, passed
from .._resource import QueryValue, Resource, ThreadResource
from ..errors import InvalidResponse, UnreadableThreads
from ..models import ThreadInfo
from .receipts import received

READ_SECONDS = 60.0
"""Maximum time in seconds without data during an export."""
MAX_CONTROL_BYTES = 1_000
"""Maximum length of a line that is not a document."""


def export(thread: ThreadResource) -> Flow[str]:
    """Returns the whole thread as a JSON document. JSON values have the same bytes as when they were written."""
    response: Response = yield thread.read("/export")
    response.members()  # checks that the document is complete
    return response.body.decode()


def export_all(resource: Resource, owner: str = OMITTED, *, cursor: str | None = None) -> Items[str]:
    """Yields a document for each thread (of `owner`). Skips unreadable threads, and then raises `UnreadableThreads`."""
    query: dict[str, QueryValue] = {**passed(owner=owner), "cursor": cursor}
    unreadable: list[str] = []
    while True:
        yield Open(resource.read("/v1/export", query))
        end: dict[str, Any] = {}
        rest = b""
        while part := (yield Read(READ_SECONDS)):
            *lines, rest = (rest + part).split(b"\n")
            for line in filter(None, lines):
                end = _control_line(line)
                if not end:
                    yield Emit(line.decode())
                elif "error" in end:
                    unreadable.append(str(end.get("thread_id")))
        if end.get("complete"):
            break
        if not end.get("cursor"):
            raise InvalidResponse("The export ended before its last line.")
        query["cursor"] = end["cursor"]
    if unreadable:
        raise UnreadableThreads(unreadable)


def _control_line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_CONTROL_BYTES:
        return {}
    value = Response(200, {}, line).members()
    return {} if "format" in value else value


def import_document(
    resource: Resource,
    document: str | bytes,
    *,
    if_exists: str | None = None,
    idempotency_key: str | None = None,
) -> Flow[ThreadInfo]:
    """Imports a thread. If the thread exists, raises `Conflict` unless `if_exists` is `replace` or `skip`."""
    request = resource.write(
        "POST",
        "/v1/threads/import",
        _utf8(document),
        query={"if_exists": if_exists},
        idempotency_key=idempotency_key,
    )
    return ThreadInfo.of((yield from received(request)))


def _utf8(document: str | bytes) -> bytes:
    """Encodes a document as UTF-8. Raises `ValueError` for UTF-16 and UTF-32, which Windows programs may write."""
    data = document.encode() if isinstance(document, str) else document
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        raise ValueError("The document is in UTF-16 or UTF-32. It must be in UTF-8.")
    if data.startswith(codecs.BOM_UTF8):
        raise ValueError("The document begins with a byte order mark. It must be in UTF-8 without one.")
    return data
