use std::fmt;
use std::str::FromStr;

use super::json::text::Json;
use super::scope::ScopeId;
use super::threads::image::Origin;
use super::threads::thread::Life;
use super::threads::thread_id::ThreadId;
use super::{Fingerprint, Heap, TraceParent, heap};

/// Maximum number of keys that an event names. If more keys changed, the event names no keys.
pub const NAMED_KEYS_MAX: usize = 1_000;
/// Maximum total size in bytes of the named keys, encoded as JSON strings.
pub const NAMED_KEY_BYTES_MAX: usize = 65_536;

/// The position of an event in the log of its bucket, one partition of the event log. Positions increase even if the
/// clock is set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Unix milliseconds, by the clock of the log.
    pub ms: u64,
    /// The number within the millisecond.
    pub seq: u64,
}

/// The unique id of an event: `evt_`, followed by its bucket and position in hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The bucket, which is one partition of the event log.
    pub bucket: u16,
    /// The position in the log.
    pub position: Position,
}

/// A logged event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The id.
    pub id: EventId,
    /// The thread that the event is about, or the scope in which keys or tasks changed.
    pub subject: ScopeId,
    /// When the event happened, in Unix milliseconds. For an expired thread, the time of expiry.
    pub time_ms: u64,
    /// The life, a token that distinguishes threads that reuse an id. Zero if a request names a thread that does not
    /// exist.
    pub life: Life,
    /// The version of the subject after the event. For a thread that has ended, its last version.
    pub version: u64,
    /// The event's sequence number among the events of its subject, starting at 1. Zero if a request names a thread
    /// that does not exist.
    pub sequence: u64,
    /// The trace of the request that caused the event, if any. An expiry has no trace. Boxed to keep events small.
    pub trace: Option<Box<TraceParent>>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of event, with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The first write to a thread, or its restoration from the archive.
    Created {
        /// The keys of the state as a JSON array of strings; `None` if there are too many to name.
        keys: Option<Json>,
        /// True if the thread was restored from the archive.
        restored: bool,
    },
    /// A write to a watched thread.
    Updated {
        /// The keys that were set, pushed to, incremented or deleted, as a JSON array of strings. `None` if there are
        /// too many to name.
        keys: Option<Json>,
        /// True if the metadata was set.
        metadata: bool,
    },
    /// The end of a thread. Unless the thread was erased, its final state is archived under its id and [`Life`].
    Destroyed {
        /// Why the thread ended.
        reason: EndReason,
        /// True if the final state was lost, because no server was running during the grace period after the expiry.
        state_lost: bool,
    },
    /// The move of a live thread to a different id. Later events have the new id.
    Rotated {
        /// The new id.
        to: ThreadId,
    },
    /// The end of a request.
    Completed(Completed),
    /// A write to the keys of a watched scope.
    KvUpdated {
        /// The keys that were set, deleted or incremented, as a JSON array of strings. `None` if there are too many to
        /// name.
        keys: Option<Json>,
    },
    /// A write to the task list of a watched scope.
    TaskListUpdated,
    /// An append to the history of a watched thread. Appends do not change the version of the thread.
    HistoryAppended {
        /// The position of the first new item.
        first_seq: u64,
        /// The position of the last new item.
        last_seq: u64,
    },
    /// The creation of a thread as a copy of another thread. Follows the `Created` event of the copy.
    Forked {
        /// The source and its version. Boxed to keep events small.
        origin: Box<Origin>,
    },
}

/// A completed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The id of the session.
    pub session: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// Why a thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Its TTL or its maximum age passed.
    Expired,
    /// Destroyed by a caller.
    Destroyed,
    /// Erased with all data of its owner.
    Erased,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// `thread.created`
    ThreadCreated,
    /// `thread.updated`
    ThreadUpdated,
    /// `thread.destroyed`
    ThreadDestroyed,
    /// `thread.rotated`
    ThreadRotated,
    /// `session.completed`
    SessionCompleted,
    /// `kv_updated`
    KvUpdated,
    /// `task_list_updated`
    TaskListUpdated,
    /// `history.appended`
    HistoryAppended,
    /// `thread.forked`
    ThreadForked,
}

/// An unknown event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an event type is thread.created, thread.updated, thread.destroyed, thread.rotated, \
     session.completed, kv_updated, task_list_updated, history.appended or thread.forked"
)]
pub struct EventTypeError;

/// A malformed event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is `evt_` and 26 hex digits")]
pub struct EventIdError;

/// A set of event types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTypes(u16);

impl Event {
    /// Returns the type.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        match self.kind {
            EventKind::Created { .. } => EventType::ThreadCreated,
            EventKind::Updated { .. } => EventType::ThreadUpdated,
            EventKind::Destroyed { .. } => EventType::ThreadDestroyed,
            EventKind::Rotated { .. } => EventType::ThreadRotated,
            EventKind::Completed(_) => EventType::SessionCompleted,
            EventKind::KvUpdated { .. } => EventType::KvUpdated,
            EventKind::TaskListUpdated => EventType::TaskListUpdated,
            EventKind::HistoryAppended { .. } => EventType::HistoryAppended,
            EventKind::Forked { .. } => EventType::ThreadForked,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn subject_digest(&self) -> Fingerprint {
        subject_digest(&self.subject)
    }

    /// Returns whether the event is a change to the keys or tasks of a scope.
    #[doc(hidden)]
    #[must_use]
    pub fn is_scope_change(&self) -> bool {
        matches!(
            self.kind,
            EventKind::KvUpdated { .. } | EventKind::TaskListUpdated
        )
    }

    /// Returns whether the event reports a change. Thread ends, moves and completed requests do not count as changes.
    #[doc(hidden)]
    #[must_use]
    pub fn is_state_change(&self) -> bool {
        !matches!(
            self.kind,
            EventKind::Destroyed { .. } | EventKind::Rotated { .. } | EventKind::Completed(_)
        )
    }

    /// Returns the thread of the event or of its scope.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.subject.thread()
    }
}

/// Returns a short digest of the subject of events.
pub fn subject_digest(subject: &ScopeId) -> Fingerprint {
    Fingerprint::of(&[subject.to_string().as_bytes()])
}

impl Heap for Event {
    fn heap_bytes(&self) -> u64 {
        let kind_bytes = match &self.kind {
            EventKind::Created { keys, .. }
            | EventKind::Updated { keys, .. }
            | EventKind::KvUpdated { keys } => keys.as_ref().map_or(0, Heap::heap_bytes),
            EventKind::Completed(completed) => heap::block(completed.session.capacity()),
            EventKind::Destroyed { .. }
            | EventKind::Rotated { .. }
            | EventKind::TaskListUpdated
            | EventKind::HistoryAppended { .. } => 0,
            EventKind::Forked { .. } => heap::array::<Origin>(1),
        };
        let trace = self
            .trace
            .as_ref()
            .map_or(0, |_| heap::array::<TraceParent>(1));
        self.subject.heap_bytes() + kind_bytes + trace
    }
}

impl EventKind {
    /// Returns whether the thread expired. An expiry is not attributed to a request, even if a request detected it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_expiry(&self) -> bool {
        let reason = EndReason::Expired;
        matches!(self, Self::Destroyed { reason: of, .. } if *of == reason)
    }
}

impl EventType {
    /// Every type.
    pub const ALL: [Self; 9] = [
        Self::ThreadCreated,
        Self::ThreadUpdated,
        Self::ThreadDestroyed,
        Self::ThreadRotated,
        Self::SessionCompleted,
        Self::KvUpdated,
        Self::TaskListUpdated,
        Self::HistoryAppended,
        Self::ThreadForked,
    ];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ThreadCreated => "thread.created",
            Self::ThreadUpdated => "thread.updated",
            Self::ThreadDestroyed => "thread.destroyed",
            Self::ThreadRotated => "thread.rotated",
            Self::SessionCompleted => "session.completed",
            Self::KvUpdated => "kv_updated",
            Self::TaskListUpdated => "task_list_updated",
            Self::HistoryAppended => "history.appended",
            Self::ThreadForked => "thread.forked",
        }
    }
}

impl FromStr for EventType {
    type Err = EventTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let event_type = Self::ALL
            .into_iter()
            .find(|event_type| event_type.as_str() == text);
        event_type.ok_or(EventTypeError)
    }
}

impl EventTypes {
    /// Every type.
    pub const ALL: Self = Self((1 << EventType::ALL.len()) - 1);

    /// Returns whether the set contains `event_type`.
    #[must_use]
    pub fn contains(self, event_type: EventType) -> bool {
        self.0 & 1 << event_type as u16 != 0
    }

    /// Returns whether the set contains event types that are logged only while a consumer requests them.
    #[doc(hidden)]
    #[must_use]
    pub fn has_changes(self) -> bool {
        let changes = [
            EventType::ThreadUpdated,
            EventType::KvUpdated,
            EventType::TaskListUpdated,
            EventType::HistoryAppended,
        ];
        changes.into_iter().any(|change| self.contains(change))
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the types of the set.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL
            .into_iter()
            .filter(move |event_type| self.contains(*event_type))
    }
}

impl FromIterator<EventType> for EventTypes {
    fn from_iter<I: IntoIterator<Item = EventType>>(types: I) -> Self {
        let set = types.into_iter().fold(0, |set, one| set | 1 << one as u16);
        Self(set)
    }
}

impl EndReason {
    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Destroyed => "destroyed",
            Self::Erased => "erased",
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { ms, seq } = self.position;
        write!(f, "evt_{:04x}{ms:012x}{seq:010x}", self.bucket)
    }
}

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("evt_").ok_or(EventIdError)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != 26 || !digits.bytes().all(is_hex) {
            return Err(EventIdError);
        }
        let number = |range| u64::from_str_radix(&digits[range], 16).map_err(|_| EventIdError);
        Ok(Self {
            bucket: number(0..4)? as u16,
            position: Position {
                ms: number(4..16)?,
                seq: number(16..26)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_text() {
        let id = EventId {
            bucket: 255,
            position: Position {
                ms: 1_700_000_000_123,
                seq: 7,
            },
        };

        assert_eq!(id.to_string(), "evt_00ff018bcfe5687b0000000007");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "evt_", "evt_00FF018bcfe5687b0000000007", "evt_00ff"] {
            assert_eq!(bad.parse::<EventId>(), Err(EventIdError));
        }
    }

    #[test]
    fn every_type_parses_from_its_name() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse(), Ok(event_type));
            assert!(EventTypes::ALL.contains(event_type));
        }
        assert_eq!("thread.read".parse::<EventType>(), Err(EventTypeError));

        let types: EventTypes = [EventType::ThreadDestroyed].into_iter().collect();
        assert!(types.iter().eq([EventType::ThreadDestroyed]));
    }
}
