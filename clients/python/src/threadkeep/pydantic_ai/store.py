from __future__ import annotations

import secrets
from collections.abc import Sequence

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from .._adapter import AsyncConnected, AsyncConnection, checked_prefix, digest, namespace_name, tag_of
from ..aclient import AsyncThreadkeep
from ..errors import VersionMismatch
from ..models import Entry
from . import entries

RECORD = TypeAdapter(ConversationRecord)


class ThreadkeepConversationStore(AsyncConnected, ConversationStore):
    """Stores conversations in key-value entries. Several processes may share them. A message has up to 1 MiB.

    A save fails if the stored conversation has changed since it was loaded. Messages are stored before the record that
    refers to them, so readers never see an interrupted save. Data never expires. Messages are kept after their
    conversation is deleted, because forks may refer to them. Messages of a failed save are also kept. Use a different
    `prefix` for each framework. Without `client`, the store creates a client, and `close` closes it.
    """

    def __init__(
        self,
        *,
        client: AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "pydantic-ai",
    ) -> None:
        prefix = checked_prefix(prefix)
        self._connection = AsyncConnection(client, base_url, api_key)
        self._records = self._connection.client.kv(namespace_name(prefix, "records"))
        self._scopes = self._connection.client.kv(namespace_name(prefix, "scopes"))
        self._entries = self._connection.client.kv(namespace_name(prefix, "entries"))

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Returns the record of a conversation, or None."""
        return _loaded(await self._records.get(digest(conversation_id)))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Returns all records, or those of `scope`, newest `updated_at` first. Reads all records even with `limit`."""
        if scope is None:
            stored = [entry async for entry in self._records.entries()]
        else:
            keys = [entry.key.rpartition("/")[2] async for entry in self._scopes.keys(f"{digest(scope)}/")]
            stored = list((await self._records.get_many(keys)).values())
        records = [RECORD.validate_json(entry.body) for entry in stored]
        records = [record for record in records if scope is None or record.scope == scope]
        records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores new messages, then the record.

        Raises `ConversationConflict` if the revision of the stored record is not `expected_revision`, or if the entry
        `record.head_id` or the parent of a new entry is missing.
        """
        conflict = ConversationConflict(record.conversation_id)
        key = digest(record.conversation_id)
        body = RECORD.dump_json(record)
        stored = await self._records.get(key)
        existing = _loaded(stored)
        if (existing.revision if existing else None) != expected_revision:
            raise conflict
        stored_ids = {record.head_id, *(entry.parent_id for entry in new_entries)} - {entry.id for entry in new_entries}
        try:
            parents = await entries.read(self._entries, (id for id in stored_ids if id is not None))
            await entries.write(self._entries, new_entries, parents)
        except LookupError as error:
            raise conflict from error
        if record.scope is not None and (existing is None or existing.scope != record.scope):
            await self._scopes.put(f"{digest(record.scope)}/{key}", b"")
        try:
            await self._records.put(
                key,
                body,
                content_type="application/json",
                if_absent=stored is None,
                if_match=tag_of(stored.etag) if stored else None,
                idempotency_key=secrets.token_hex(16),
            )
        except VersionMismatch as error:
            raise conflict from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a record. Keeps its messages, because forks may refer to them.

        Raises `ConversationConflict` if no record with `expected_revision` is stored.
        """
        key = digest(conversation_id)
        stored = await self._records.get(key)
        record = _loaded(stored)
        if stored is None or record is None or record.revision != expected_revision:
            raise ConversationConflict(conversation_id)
        listing = None if record.scope is None else await self._scopes.get(f"{digest(record.scope)}/{key}")
        try:
            await self._records.delete(key, if_match=tag_of(stored.etag), idempotency_key=secrets.token_hex(16))
        except VersionMismatch as error:
            raise ConversationConflict(conversation_id) from error
        if listing:
            try:
                await self._scopes.delete(
                    listing.key, if_match=tag_of(listing.etag), idempotency_key=secrets.token_hex(16)
                )
            except VersionMismatch:
                pass  # the conversation was created again

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Returns the entry with this ID. Raises `LookupError` if the entry does not exist."""
        [stored] = await entries.read(self._entries, [entry_id])
        return stored.entry

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Returns the last `limit` entries up to `head_id`, oldest first. Raises `LookupError` if any is missing."""
        return [] if head_id is None else await entries.read_ancestors(self._entries, head_id, limit)


def _loaded(entry: Entry | None) -> ConversationRecord | None:
    return None if entry is None else RECORD.validate_json(entry.body)
