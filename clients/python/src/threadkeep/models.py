"""The objects that calls return: frozen, with timezone-aware times. Unknown members of a response are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from .errors import InvalidResponse

M = TypeVar("M", bound="Model")


class Model:
    """A part of a response."""

    @classmethod
    def of(cls: type[M], data: Mapping[str, Any], **more: Any) -> M:
        """The model of an object of the API."""
        names, times, required = _shape(cls)
        if not isinstance(data, Mapping):
            raise InvalidResponse("The response has JSON of another kind.")
        values: dict[str, Any] = {name: data[name] for name in names if name in data}
        for name in required:
            if name not in values:
                raise InvalidResponse(f"The response has no `{name}`.")
        for name in times:
            if isinstance(values.get(name), str):
                values[name] = time_of(values[name])
        return cls(**{**values, **more})


Shape = tuple[list[str], list[str], list[str]]
_shapes: dict[type, Shape] = {}


def _shape(model: type[Any]) -> Shape:
    """The names of all members, of those that are times, and of those that are required."""
    shape = _shapes.get(model)
    if shape is None:
        members = fields(model)
        names = [member.name for member in members]
        times = [name for name in names if name == "at" or name.endswith("_at")]
        required = [one.name for one in members if one.default is MISSING and one.default_factory is MISSING]
        shape = _shapes[model] = (names, times, required)
    return shape


def time_of(text: str) -> datetime:
    """A time in RFC 3339."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass(frozen=True)
class ThreadInfo(Model):
    """A thread without its state."""

    id: str
    exists: bool
    version: int
    size_bytes: int
    limit_bytes: int
    keys: int
    ttl_seconds: int
    metadata: dict[str, Any] = field(default_factory=dict)
    owner: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    signed_id: str | None = field(default=None, repr=False)
    etag: str | None = None


@dataclass(frozen=True)
class Receipt(Model):
    """The result of a write. Members that the write does not have are None."""

    version: int
    size_bytes: int | None = None
    length: int | None = None
    value: int | None = None
    deleted: bool | None = None
    results: list[dict[str, Any]] | None = None
    etag: str | None = None
    replayed: bool = False


@dataclass(frozen=True)
class HistoryItem(Model):
    """An item of a history, at its place."""

    seq: int
    id: str
    value: Any
    at: datetime
    segment: int | None = None
    """For a summary, the segment with its originals, while they are kept."""


@dataclass(frozen=True)
class HistorySegment(Model):
    """Originals that a compaction replaced. `items`: the IDs of the summary."""

    segment: int
    first_seq: int
    through: int
    count: int
    size_bytes: int
    items: list[str]
    compacted_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class AppendedItem(Model):
    """Where an item is. `repeated`: it was there already."""

    id: str
    seq: int
    repeated: bool


@dataclass(frozen=True)
class Checkpoint(Model):
    """A saved state. `state` and `metadata` are only in the answer to `checkpoints.get`."""

    checkpoint: int
    version: int
    size_bytes: int
    name: str | None = None
    created_at: datetime | None = None
    state: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class TurnState(Model):
    """Whether somebody has the turn."""

    held: bool
    expires_at: datetime | None = None
    exclusive: bool = False


@dataclass(frozen=True)
class Entry:
    """An entry of a namespace."""

    key: str
    body: bytes
    content_type: str
    etag: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class EntryInfo(Model):
    """An entry in a list."""

    key: str
    size_bytes: int
    content_type: str
    etag: str | None = None
    expires_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class EntryPut:
    """An entry to put, for `put_many`. The server takes `str` as UTF-8."""

    key: str
    body: bytes | str
    content_type: str | None = None
    ttl_seconds: int | None = None
    if_absent: bool = False


@dataclass(frozen=True)
class PutOutcome(Model):
    """The outcome of one entry of `put_many`. If `ok` is false, `code` and `detail` say why."""

    key: str
    ok: bool
    created: bool | None = None
    version: int | None = None
    size_bytes: int | None = None
    expires_at: datetime | None = None
    status: int | None = None
    code: str | None = None
    detail: str | None = None
    current_version: int | None = None


@dataclass(frozen=True)
class NamespaceInfo(Model):
    """A namespace without its entries."""

    namespace: str
    entries: int
    size_bytes: int
    default_ttl_seconds: int | None = None
    idle_ttl_seconds: int | None = None
    created_at: datetime | None = None
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class ScopeInfo(Model):
    """A scope without its contents."""

    scope: str
    exists: bool
    is_ended: bool
    version: int
    keys: int
    limit_keys: int
    size_bytes: int
    limit_bytes: int
    tasks: int
    unfinished_tasks: int
    history: int
    history_bytes: int
    history_limit_bytes: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Task(Model):
    """A task of a scope. `status` is pending, in_progress or completed."""

    content: str
    status: str = "pending"
    id: str | None = None
    active_form: str | None = None


@dataclass(frozen=True)
class ToolResult(Model):
    """The result of a tool, or the error to show to the model."""

    result: dict[str, Any] | None = None
    error: str | None = None
    warning: str | None = None


@dataclass(frozen=True)
class ToolMessages(Model):
    """The messages that answer a model's tool calls, and the calls of tools that the server does not have."""

    messages: list[dict[str, Any]]
    unknown: list[dict[str, Any]] | None = None
    warning: str | None = None


@dataclass(frozen=True)
class McpUrl(Model):
    """A URL, relative to the server's, that opens one scope to a model's MCP client. It is a secret."""

    scope: str
    url: str = field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Archive(Model):
    """An ended thread. `state` is only in the answer to `archives.get`."""

    id: str
    life: str
    version: int
    size_bytes: int
    reason: str
    metadata: dict[str, Any] = field(default_factory=dict)
    ended_at: datetime | None = None
    history_count: int | None = None
    history_url: str | None = None
    checkpoints: list[int] = field(default_factory=list)
    state: dict[str, Any] | None = None


@dataclass(frozen=True)
class OwnerInfo(Model):
    """How much an owner has."""

    owner: str
    threads: int
    size_bytes: int


@dataclass(frozen=True)
class Erasure(Model):
    """How much was erased."""

    threads: int
    archives: int
    complete: bool


@dataclass(frozen=True)
class Webhook(Model):
    """An endpoint. Its secret is only in the answer that sets it."""

    id: str
    url: str
    events: list[str]
    name: str | None = None
    created_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FailedDelivery(Model):
    """A failed event."""

    event_id: str
    type: str
    attempts: int
    last_error: str
    thread_id: str | None = None
    scope: str | None = None
    time: str | None = None
    first_attempt_at: datetime | None = None


@dataclass(frozen=True)
class PendingDelivery(Model):
    """An event that is to be delivered again, or waits for an earlier event of its thread."""

    event_id: str
    type: str
    attempts: int
    last_error: str | None = None
    thread_id: str | None = None
    scope: str | None = None
    time: str | None = None
    first_attempt_at: datetime | None = None
    next_attempt_at: datetime | None = None


@dataclass(frozen=True)
class PendingDeliveries:
    """Some pending events, and the number of all."""

    pending: list[PendingDelivery]
    total: int


@dataclass(frozen=True)
class ApiKey(Model):
    """The name and the rights of an API key."""

    name: str
    rights: list[str]


@dataclass(frozen=True)
class Setting(Model):
    """A setting of the server.

    `value` has `***` for each secret. `source` is `default`, a file, a variable or a flag.
    """

    group: str
    name: str
    value: str
    default: str
    source: str
    help: str


@dataclass(frozen=True)
class Event:
    """An event of a stream. `id` is where the stream continues after it; `data` is the CloudEvent."""

    type: str
    id: str
    data: dict[str, Any]
