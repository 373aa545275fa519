use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::stored::StoredEvent;
use threadkeep_domain::Event;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) event: Event,
    pub(crate) attempts: u32,
    /// Time of the first attempt; `None` while the event is waiting for an earlier event of its thread.
    pub(crate) first_attempt_ms: Option<u64>,
    pub(crate) next_attempt_ms: u64,
    pub(crate) last_error: Option<String>,
    /// True if the event was parked, and has been replayed.
    pub(crate) replayed: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    format: u32,
    #[serde(borrow)]
    event: StoredEvent<'a>,
    attempts: u32,
    first_attempt_ms: Option<u64>,
    next_attempt_ms: u64,
    last_error: Option<String>,
    #[serde(default)]
    replayed: bool,
}

const FORMAT: u32 = 1;

impl Record {
    pub(super) fn without_attempts(event: Event) -> Self {
        Self {
            event,
            attempts: 0,
            first_attempt_ms: None,
            next_attempt_ms: 0,
            last_error: None,
            replayed: false,
        }
    }

    /// Creates the record of a replayed event. The event's retry period starts over.
    pub(super) fn replayed(self) -> Self {
        Self {
            replayed: true,
            ..Self::without_attempts(self.event)
        }
    }

    /// Returns the record as an erasure leaves it: `None` for a state change, and otherwise the record without its last
    /// error.
    pub(super) fn erased(self) -> Option<Self> {
        (!self.event.is_state_change()).then_some(Self {
            last_error: None,
            ..self
        })
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        let stored = Stored {
            format: FORMAT,
            event: (&self.event).into(),
            attempts: self.attempts,
            first_attempt_ms: self.first_attempt_ms,
            next_attempt_ms: self.next_attempt_ms,
            last_error: self.last_error.clone(),
            replayed: self.replayed,
        };
        serde_json::to_vec(&stored)
            .expect("text and numbers always serialize")
            .into()
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let stored: Stored<'_> = serde_json::from_slice(bytes).ok()?;
        if stored.format != FORMAT {
            return None;
        }
        Some(Self {
            event: stored.event.read()?,
            attempts: stored.attempts,
            first_attempt_ms: stored.first_attempt_ms,
            next_attempt_ms: stored.next_attempt_ms,
            last_error: stored.last_error,
            replayed: stored.replayed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::scope::ScopeId;
    use threadkeep_domain::{
        Completed, EndReason, EventId, EventKind, Json, Life, Origin, Position, ThreadId,
    };

    fn event(kind: EventKind) -> Event {
        Event {
            id: EventId {
                bucket: 200,
                position: Position { ms: 1, seq: 2 },
            },
            subject: ScopeId::Thread(ThreadId::random()),
            time_ms: 3,
            life: Life(u64::MAX),
            version: u64::MAX,
            sequence: 4,
            trace: None,
            kind,
        }
    }

    #[test]
    fn every_event_kind_round_trips() {
        let keys = Some(Json::parse(r#"["a\ud800","\u00e9"]"#).unwrap());
        for kind in [
            EventKind::Created {
                keys: keys.clone(),
                restored: true,
            },
            EventKind::Created {
                keys: None,
                restored: false,
            },
            EventKind::Updated {
                keys,
                metadata: true,
            },
            EventKind::Destroyed {
                reason: EndReason::Expired,
                state_lost: true,
            },
            EventKind::Destroyed {
                reason: EndReason::Destroyed,
                state_lost: false,
            },
            EventKind::Destroyed {
                reason: EndReason::Erased,
                state_lost: false,
            },
            EventKind::Completed(Completed {
                session: "sess_\"1".into(),
                status: 503,
                duration_ms: 7,
            }),
            EventKind::KvUpdated {
                keys: Some(Json::parse(r#"["","a\nb"]"#).unwrap()),
            },
            EventKind::Rotated {
                to: ThreadId::random(),
            },
            EventKind::TaskListUpdated,
            EventKind::HistoryAppended {
                first_seq: 1,
                last_seq: u64::MAX,
            },
            EventKind::Forked {
                origin: Box::new(Origin {
                    id: "thrd_0123456789abcdef0123456789abcdef".parse().unwrap(),
                    version: 9,
                }),
            },
        ] {
            let record = Record {
                attempts: 3,
                first_attempt_ms: Some(5),
                next_attempt_ms: 6,
                last_error: Some("it \"failed\"".into()),
                ..Record::without_attempts(event(kind))
            };

            assert_eq!(Record::read(&record.to_bytes()), Some(record));
        }
    }

    #[test]
    fn a_trace_round_trips_unless_its_format_is_unknown() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let record = Record::without_attempts(Event {
            trace: Some(Box::new(trace.parse().unwrap())),
            ..event(EventKind::TaskListUpdated)
        });
        let bytes = record.to_bytes();

        assert_eq!(Record::read(&bytes), Some(record));
        let text = std::str::from_utf8(&bytes).unwrap();
        let later = text.replace("-00f067aa0ba902b7-01", "-more");
        let read = Record::read(later.as_bytes()).unwrap();
        assert_eq!(read.event.trace, None);
    }

    #[test]
    fn scope_events_round_trip() {
        let record = Record::without_attempts(Event {
            subject: "session:a\"b".parse().unwrap(),
            ..event(EventKind::TaskListUpdated)
        });

        assert_eq!(Record::read(&record.to_bytes()), Some(record));
    }

    #[test]
    fn records_in_other_formats_are_rejected() {
        let record = Record::without_attempts(event(EventKind::Destroyed {
            reason: EndReason::Expired,
            state_lost: false,
        }));
        let text = String::from_utf8(record.to_bytes().to_vec()).unwrap();

        let newer = text.replace("\"format\":1", "\"format\":2");
        assert_ne!(newer, text);
        for bad in ["", "{}", &newer, &text.replace("thrd_", "x")] {
            assert_eq!(Record::read(bad.as_bytes()), None);
        }
    }
}
