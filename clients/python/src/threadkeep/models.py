"""Types that calls return. They are frozen, and their times have time zones. Unknown response members are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from .errors import InvalidResponse

M = TypeVar("M", bound="Model")


class Model:
    @classmethod
    def of(cls: type[M], data: Mapping[str, Any], **more: Any) -> M:
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
    shape = _shapes.get(model)
    if shape is None:
        members = fields(model)
        names = [member.name for member in members]
        times = [name for name in names if name == "at" or name.endswith("_at")]
        required = [one.name for one in members if one.default is MISSING and one.default_factory is MISSING]
        shape = _shapes[model] = (names, times, required)
    return shape


def time_of(text: str) -> datetime:
    """Parses an RFC 3339 timestamp."""
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
    """Result of a write. Members that a write does not set have the value None."""

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
    """An item of a history."""

    seq: int
    id: str
    value: Any
    at: datetime
    segment: int | None = None
    """Number of the segment with the items that this summary replaced. None if the server does not store them."""


@dataclass(frozen=True)
class HistorySegment(Model):
    """The original items that a compaction replaced. `items` has the IDs of the summary items."""

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
    """Position (`seq`) of an appended item. `repeated` is true if the history already had the item."""

    id: str
    seq: int
    repeated: bool


@dataclass(frozen=True)
class Checkpoint(Model):
    """A checkpoint. Only `checkpoints.get` returns `state` and `metadata`."""

    checkpoint: int
    version: int
    size_bytes: int
    name: str | None = None
    created_at: datetime | None = None
    state: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class TurnState(Model):
    """Whether a client holds the turn."""

    held: bool
    number: int
    """Number of the last turn. 0 if the thread has had no turn."""
    expires_at: datetime | None = None
    exclusive: bool = False


@dataclass(frozen=True)
class Effect(Model):
    """The record of a tool call. `state` is `granted`, `running`, `in_doubt`, `done` or `failed`."""

    id: str
    state: str
    tool: str
    hash: str
    """Hash of the arguments."""
    attempt: int
    """Number of the last attempt, starting at 1."""
    idempotency_key: str
    turn: int
    """Number of the turn that began the last attempt."""
    begun_at: datetime
    result: Any = None
    error: Any = None
    fence: str | None = field(default=None, repr=False)
    """Gives the right to settle a granted attempt."""

    @property
    def key(self) -> str:
        """Key to pass to the system that the tool calls. All attempts have the same key."""
        return self.idempotency_key


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
    """An entry without its body."""

    key: str
    size_bytes: int
    content_type: str
    etag: str | None = None
    expires_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class EntryPut:
    """An entry for `put_many`. The server stores `str` as UTF-8."""

    key: str
    body: bytes | str
    content_type: str | None = None
    ttl_seconds: int | None = None
    if_absent: bool = False


@dataclass(frozen=True)
class PutOutcome(Model):
    """Outcome for one entry of `put_many`. If `ok` is false, `code` and `detail` describe the error."""

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
    """A task of a scope. `status` is `pending`, `in_progress` or `completed`."""

    content: str
    status: str = "pending"
    id: str | None = None
    active_form: str | None = None


@dataclass(frozen=True)
class ToolResult(Model):
    """Result of a tool, or the error to show to the model."""

    result: dict[str, Any] | None = None
    error: str | None = None
    warning: str | None = None


@dataclass(frozen=True)
class ToolMessages(Model):
    """Answers to a model's tool calls. `unknown` has the calls to tools that the server does not have."""

    messages: list[dict[str, Any]]
    unknown: list[dict[str, Any]] | None = None
    warning: str | None = None


@dataclass(frozen=True)
class McpUrl(Model):
    """A secret URL that gives an MCP client access to one scope. `url` is relative to the server's URL."""

    scope: str
    url: str = field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Archive(Model):
    """An ended thread. Only `archives.get` returns `state`."""

    id: str
    life: str
    """Distinguishes threads that had the same ID, one after the other."""
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
    """How much data an owner has."""

    owner: str
    threads: int
    size_bytes: int


@dataclass(frozen=True)
class Erasure(Model):
    """How many threads and archives were erased. `complete` is true if none of the owner's data remains."""

    threads: int
    archives: int
    complete: bool


@dataclass(frozen=True)
class Webhook(Model):
    """A webhook endpoint. Only the response to the call that sets the secret contains `secret`."""

    id: str
    url: str
    events: list[str]
    name: str | None = None
    created_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FailedDelivery(Model):
    """An event that could not be delivered."""

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
    """An event that waits for its next delivery attempt, or for an earlier event of the same thread."""

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
    """Some of the pending events, and the total number of pending events."""

    pending: list[PendingDelivery]
    total: int


@dataclass(frozen=True)
class ApiKey(Model):
    """Name and rights of an API key."""

    name: str
    rights: list[str]


@dataclass(frozen=True)
class Setting(Model):
    """A server setting. Secrets are masked as `***`. `source` is `default`, or names a file, variable or flag."""

    group: str
    name: str
    value: str
    default: str
    source: str
    help: str


@dataclass(frozen=True)
class Event:
    """An event of a stream. `data` is the CloudEvent. To resume after this event, pass `id` as `last_event_id`."""

    type: str
    id: str
    data: dict[str, Any]
