//! Events, as the log keeps them.

use std::fmt;
use std::str::FromStr;

use super::json::text::Json;
use super::scope::ScopeId;
use super::threads::image::Origin;
use super::threads::thread::Life;
use super::threads::thread_id::ThreadId;
use super::{Fingerprint, Heap, TraceParent, heap};

/// Most keys that an event names. A change of more keys names none.
pub const MOST_KEYS_NAMED: usize = 1_000;
/// Bytes of their names, as JSON strings, at most.
pub const MOST_KEY_BYTES_NAMED: usize = 65_536;

/// The position of an event in the log of its bucket: milliseconds, and a number within them.
/// Positions only grow, even when the clock goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Milliseconds of the Unix epoch, by the clock of the log.
    pub ms: u64,
    /// The number within that millisecond.
    pub seq: u64,
}

/// The unique id of an event: `evt_` and its place in the log in hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Which log.
    pub bucket: u16,
    /// Where in it.
    pub position: Position,
}

/// Something that happened, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Which event this is.
    pub id: EventId,
    /// The thread, or for a change of keys or tasks any scope.
    pub subject: ScopeId,
    /// When it happened, in milliseconds of the Unix epoch. The end of an expired thread has the
    /// time of its expiry.
    pub time_ms: u64,
    /// The life of the thread; zero for a request about a thread that does not exist.
    pub life: Life,
    /// The version of the thread afterwards. For an end, the last version; for a change of keys or
    /// tasks, the version of the scope, which is separate.
    pub version: u64,
    /// Counts the events of a subject that were logged, from 1; 0 for a request about a thread that
    /// does not exist.
    pub sequence: u64,
    /// The trace of the request that it is an effect of, if that has one. Ends by time have none. Boxed, since it would make
    /// all events larger.
    pub trace: Option<Box<TraceParent>>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of event, with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A first write, or a restoration from the archive.
    Created {
        /// Its keys, as a JSON array of strings; `None` if they are too many to name.
        keys: Option<Json>,
        /// Whether it came back from the archive.
        restored: bool,
    },
    /// A write to a thread that was watched.
    Updated {
        /// The keys that were set, pushed to, incremented or deleted, as a JSON array of strings;
        /// `None` if they are too many to name.
        keys: Option<Json>,
        /// Whether the metadata was set.
        metadata: bool,
    },
    /// The end. Its final state is in the archive, under the id and the life, unless it was erased.
    Destroyed {
        /// Why.
        reason: EndReason,
        /// Whether the state was lost, because no server ran for longer than the grace.
        state_lost: bool,
    },
    /// The move of a living thread to another id, under which its later events are.
    Rotated {
        /// The new id.
        to: ThreadId,
    },
    /// The end of a request.
    Completed(Completed),
    /// A write to the keys of a scope that was watched.
    KvUpdated {
        /// The keys that were set, deleted or incremented, as a JSON array of strings; none if they are too many to
        /// name.
        keys: Option<Json>,
    },
    /// A write to the task list of a scope that was watched.
    TaskListUpdated,
    /// Items were appended to the history of a thread that was watched. The version is the thread's, which an append
    /// alone does not change.
    HistoryAppended {
        /// The place of the first item.
        first_seq: u64,
        /// The place of the last item.
        last_seq: u64,
    },
    /// A thread began as a copy of another one. Its creation is the event before.
    Forked {
        /// The source and its version; boxed, since it would make all events larger.
        origin: Box<Origin>,
    },
}

/// A request that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The session's id.
    pub session: String,
    /// The status of its response.
    pub status: u16,
    /// How long it took.
    pub duration_ms: u64,
}

/// Why a thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It was not used for its TTL, or its absolute lifetime was over.
    Expired,
    /// Somebody destroyed it.
    Destroyed,
    /// It was erased with all that its owner had; nothing of it is left.
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

/// The text is not the type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an event type is thread.created, thread.updated, thread.destroyed, thread.rotated, \
     session.completed, kv_updated, task_list_updated, history.appended or thread.forked"
)]
pub struct EventTypeError;

/// The text is not the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is `evt_` and 26 hex digits")]
pub struct EventIdError;

/// A set of event types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTypes(u16);

impl Event {
    /// Its type.
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

    /// A short digest that tells its subject from others.
    #[doc(hidden)]
    #[must_use]
    pub fn subject_digest(&self) -> Fingerprint {
        subject_digest(&self.subject)
    }

    /// Whether it is about a scope, and not about the thread whose scope it may be.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_scope(&self) -> bool {
        matches!(
            self.kind,
            EventKind::KvUpdated { .. } | EventKind::TaskListUpdated
        )
    }

    /// Whether it tells of a change, and may name keys; else it tells of an end, of a move or of a request.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_change(&self) -> bool {
        !matches!(
            self.kind,
            EventKind::Destroyed { .. } | EventKind::Rotated { .. } | EventKind::Completed(_)
        )
    }

    /// The thread that it is about, or whose scope it is about.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.subject.thread()
    }
}

/// A short digest of the subject of events.
pub fn subject_digest(subject: &ScopeId) -> Fingerprint {
    Fingerprint::of(&[subject.to_string().as_bytes()])
}

impl Heap for Event {
    fn heap_bytes(&self) -> u64 {
        let told = match &self.kind {
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
        self.subject.heap_bytes() + told + trace
    }
}

impl EventKind {
    /// Whether it is an effect of time, whichever request notices it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_time(&self) -> bool {
        let reason = EndReason::Expired;
        matches!(self, Self::Destroyed { reason: of, .. } if *of == reason)
    }
}

impl EventType {
    /// All of them.
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

    /// Its name.
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
        let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
        known.ok_or(EventTypeError)
    }
}

impl EventTypes {
    /// Every type.
    pub const ALL: Self = Self((1 << EventType::ALL.len()) - 1);

    /// Whether it has that type.
    #[must_use]
    pub fn contains(self, event_type: EventType) -> bool {
        self.0 & 1 << event_type as u16 != 0
    }

    /// Whether it has types that are logged only on demand.
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

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its types.
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
    /// Its name.
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
    fn types_are_known_by_their_names() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse(), Ok(event_type));
            assert!(EventTypes::ALL.contains(event_type));
        }
        assert_eq!("thread.read".parse::<EventType>(), Err(EventTypeError));

        let some: EventTypes = [EventType::ThreadDestroyed].into_iter().collect();
        assert!(some.iter().eq([EventType::ThreadDestroyed]));
    }
}
