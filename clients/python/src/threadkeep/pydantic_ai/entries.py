"""Stores messages as entries. The first line has the IDs of the message and of earlier messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic_ai.conversation_store import ConversationEntry
from pydantic_ai.messages import ModelMessagesTypeAdapter

from .._adapter import digest
from .._json import decode, encode
from ..errors import class_of
from ..models import Entry, EntryPut
from ..namespace import AsyncNamespace

MAX_ANCESTOR_IDS = 64
MAX_BLOCK_BYTES = 1_400_000
"""Maximum total size of the bodies in a request. A request has up to 2 MiB, and encodes bodies in base64."""


class Stored(NamedTuple):
    entry: ConversationEntry
    before: list[str]


async def read(namespace: AsyncNamespace, ids: Iterable[str]) -> list[Stored]:
    keys = {id: digest(id) for id in ids}
    found = await namespace.get_many(keys.values())
    for id, key in keys.items():
        if key not in found:
            raise LookupError(f"There is no entry {id!r}.")
    return [_loaded(found[key]) for key in keys.values()]


async def read_back(namespace: AsyncNamespace, head: str, limit: int | None) -> list[ConversationEntry]:
    newest_first: list[ConversationEntry] = []
    wanted = [head]
    while wanted and (limit is None or len(newest_first) < limit):
        block = await read(namespace, wanted if limit is None else wanted[: limit - len(newest_first)])
        newest_first += [stored.entry for stored in block]
        wanted = block[-1].before
    return newest_first[::-1]


async def write(namespace: AsyncNamespace, new: Sequence[ConversationEntry], parents: Iterable[Stored]) -> None:
    """Stores messages. The parent of each message is another new message, one of `parents`, or None."""
    before = {parent.entry.id: parent.before for parent in parents}
    puts = []
    for entry in new:
        parent = entry.parent_id
        before[entry.id] = [] if parent is None else [parent, *before[parent]][:MAX_ANCESTOR_IDS]
        puts.append(EntryPut(digest(entry.id), _dumped(entry, before[entry.id]), "application/x-ndjson"))
    for block in _blocks(puts):
        for outcome in await namespace.put_many(block):
            if not outcome.ok:
                status = outcome.status or 500
                raise class_of(status)(status, {"code": outcome.code, "detail": outcome.detail})


def _dumped(entry: ConversationEntry, before: list[str]) -> bytes:
    names = encode({"id": entry.id, "kind": entry.kind, "before": before})
    return names + b"\n" + ModelMessagesTypeAdapter.dump_json([entry.message])


def _loaded(stored: Entry) -> Stored:
    line, _, messages = stored.body.partition(b"\n")
    names: Mapping[str, str] = decode(line)
    before = list(names["before"])
    [message] = ModelMessagesTypeAdapter.validate_json(messages)
    parent = before[0] if before else None
    return Stored(ConversationEntry(id=names["id"], parent_id=parent, message=message), before)


def _blocks(puts: Iterable[EntryPut]) -> Iterator[list[EntryPut]]:
    block: list[EntryPut] = []
    size = 0
    for put in puts:
        if block and size + len(put.body) > MAX_BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(put)
        size += len(put.body)
    if block:
        yield block
