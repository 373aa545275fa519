"""Stores each message as an entry, whose first line has the IDs of the message and of its ancestors."""

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
MAX_BATCH_BYTES = 1_400_000
"""Maximum total size of the bodies in a request, which encodes them in base64 and may have up to 2 MiB."""


class Stored(NamedTuple):
    entry: ConversationEntry
    ancestor_ids: list[str]


async def read(namespace: AsyncNamespace, ids: Iterable[str]) -> list[Stored]:
    keys = {id: digest(id) for id in ids}
    found = await namespace.get_many(keys.values())
    for id, key in keys.items():
        if key not in found:
            raise LookupError(f"There is no entry {id!r}.")
    return [_loaded(found[key]) for key in keys.values()]


async def read_ancestors(namespace: AsyncNamespace, head: str, limit: int | None) -> list[ConversationEntry]:
    newest_first: list[ConversationEntry] = []
    ids = [head]
    while ids and (limit is None or len(newest_first) < limit):
        batch = await read(namespace, ids if limit is None else ids[: limit - len(newest_first)])
        newest_first += [stored.entry for stored in batch]
        ids = batch[-1].ancestor_ids
    return newest_first[::-1]


async def write(namespace: AsyncNamespace, new: Sequence[ConversationEntry], parents: Iterable[Stored]) -> None:
    """Stores messages. The parent of each message is another new message, one of `parents`, or None.

    Raises `LookupError` before it stores anything if new messages are each other's ancestors.
    """
    ancestors = {parent.entry.id: parent.ancestor_ids for parent in parents}
    puts, waiting = [], list(new)
    while waiting:
        later = []
        for entry in waiting:
            parent = entry.parent_id
            if parent is not None and parent not in ancestors:
                later.append(entry)
                continue
            ancestors[entry.id] = [] if parent is None else [parent, *ancestors[parent]][:MAX_ANCESTOR_IDS]
            puts.append(EntryPut(digest(entry.id), _dumped(entry, ancestors[entry.id]), "application/x-ndjson"))
        if len(later) == len(waiting):
            raise LookupError("the new messages are each other's ancestors")
        waiting = later
    for batch in _batches(puts):
        for outcome in await namespace.put_many(batch):
            if not outcome.ok:
                status = outcome.status or 500
                raise class_of(status)(status, {"code": outcome.code, "detail": outcome.detail})


def _dumped(entry: ConversationEntry, ancestor_ids: list[str]) -> bytes:
    header = encode({"id": entry.id, "kind": entry.kind, "before": ancestor_ids})
    return header + b"\n" + ModelMessagesTypeAdapter.dump_json([entry.message])


def _loaded(stored: Entry) -> Stored:
    line, _, messages = stored.body.partition(b"\n")
    header: Mapping[str, str] = decode(line)
    ancestor_ids = list(header["before"])
    [message] = ModelMessagesTypeAdapter.validate_json(messages)
    parent = ancestor_ids[0] if ancestor_ids else None
    return Stored(ConversationEntry(id=header["id"], parent_id=parent, message=message), ancestor_ids)


def _batches(puts: Iterable[EntryPut]) -> Iterator[list[EntryPut]]:
    batch: list[EntryPut] = []
    size = 0
    for put in puts:
        if batch and size + len(put.body) > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(put)
        size += len(put.body)
    if batch:
        yield batch
