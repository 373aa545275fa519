//! The format of events in ledgers. A ledger can keep an event after the log has deleted it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Completed, EndReason, Event, EventKind, EventType, Json, Life, Origin};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredEvent<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    event_type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<Cow<'a, str>>,
    /// Set only if the scope does not belong to a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    time_ms: u64,
    life: u64,
    version: u64,
    sequence: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "is_false")]
    restored: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    metadata: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    expired: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    erased: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    state_lost: bool,
    /// New id of a rotated thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<StoredCompletion<'a>>,
    /// First and last sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    appended: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<StoredOrigin<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredCompletion<'a> {
    id: Cow<'a, str>,
    status: u16,
    duration_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredOrigin<'a> {
    id: Cow<'a, str>,
    version: u64,
}

impl<'a> From<&'a Event> for StoredEvent<'a> {
    fn from(event: &'a Event) -> Self {
        let base = Self {
            id: event.id.to_string().into(),
            event_type: event.event_type().as_str().into(),
            thread: event.thread().map(|id| id.as_str().into()),
            scope: event.thread().is_none().then(|| event.subject.to_string()),
            time_ms: event.time_ms,
            life: event.life.0,
            version: event.version,
            sequence: event.sequence,
            keys: None,
            restored: false,
            metadata: false,
            expired: false,
            erased: false,
            state_lost: false,
            to: None,
            session: None,
            appended: None,
            origin: None,
            trace: event.trace.as_ref().map(ToString::to_string),
        };
        match &event.kind {
            EventKind::Created { keys, restored } => Self {
                keys: keys.as_ref().and_then(raw),
                restored: *restored,
                ..base
            },
            EventKind::Updated { keys, metadata } => Self {
                keys: keys.as_ref().and_then(raw),
                metadata: *metadata,
                ..base
            },
            EventKind::Destroyed { reason, state_lost } => Self {
                expired: *reason == EndReason::Expired,
                erased: *reason == EndReason::Erased,
                state_lost: *state_lost,
                ..base
            },
            EventKind::Rotated { to } => Self {
                to: Some(to.as_str().into()),
                ..base
            },
            EventKind::KvUpdated { keys } => Self {
                keys: keys.as_ref().and_then(raw),
                ..base
            },
            EventKind::TaskListUpdated => base,
            EventKind::HistoryAppended {
                first_seq,
                last_seq,
            } => Self {
                appended: Some((*first_seq, *last_seq)),
                ..base
            },
            EventKind::Forked { origin } => Self {
                origin: Some(StoredOrigin {
                    id: origin.id.as_str().into(),
                    version: origin.version,
                }),
                ..base
            },
            EventKind::Completed(completed) => Self {
                session: Some(StoredCompletion {
                    id: completed.session.as_str().into(),
                    status: completed.status,
                    duration_ms: completed.duration_ms,
                }),
                ..base
            },
        }
    }
}

impl StoredEvent<'_> {
    pub(super) fn read(self) -> Option<Event> {
        let keys = match self.keys {
            Some(keys) => Some(Json::parse(keys.get()).ok()?),
            None => None,
        };
        let kind = match self.event_type.parse().ok()? {
            EventType::ThreadCreated => EventKind::Created {
                keys,
                restored: self.restored,
            },
            EventType::ThreadUpdated => EventKind::Updated {
                keys,
                metadata: self.metadata,
            },
            EventType::ThreadDestroyed => EventKind::Destroyed {
                reason: match (self.expired, self.erased) {
                    (true, _) => EndReason::Expired,
                    (false, true) => EndReason::Erased,
                    (false, false) => EndReason::Destroyed,
                },
                state_lost: self.state_lost,
            },
            EventType::ThreadRotated => EventKind::Rotated {
                to: self.to?.parse().ok()?,
            },
            EventType::KvUpdated => EventKind::KvUpdated { keys },
            EventType::TaskListUpdated => EventKind::TaskListUpdated,
            EventType::HistoryAppended => {
                let (first_seq, last_seq) = self.appended?;
                EventKind::HistoryAppended {
                    first_seq,
                    last_seq,
                }
            }
            EventType::ThreadForked => {
                let origin = self.origin?;
                EventKind::Forked {
                    origin: Box::new(Origin {
                        id: origin.id.parse().ok()?,
                        version: origin.version,
                    }),
                }
            }
            EventType::SessionCompleted => {
                let session = self.session?;
                EventKind::Completed(Completed {
                    session: session.id.into_owned(),
                    status: session.status,
                    duration_ms: session.duration_ms,
                })
            }
        };
        Some(Event {
            id: self.id.parse().ok()?,
            subject: match (self.thread, self.scope) {
                (Some(thread), _) => ScopeId::Thread(thread.parse().ok()?),
                (None, scope) => scope?.parse().ok()?,
            },
            time_ms: self.time_ms,
            life: Life(self.life),
            version: self.version,
            sequence: self.sequence,
            trace: self
                .trace
                .and_then(|trace| trace.parse().ok())
                .map(Box::new),
            kind,
        })
    }
}

fn raw(json: &Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.as_str().to_owned()).ok()
}

fn is_false(flag: &bool) -> bool {
    !flag
}
