use super::Record;
use crate::Events;
use threadkeep_domain::Event;
use threadkeep_store::{PendingEvents, StoreError};

/// An event that will be retried, or that is waiting for an earlier event of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The event itself.
    pub event: Event,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the first attempt, in milliseconds since the Unix epoch; `None` before the first attempt.
    pub first_attempt_ms: Option<u64>,
    /// Time of the next attempt, in milliseconds since the Unix epoch; `None` while the event is waiting for an earlier
    /// event.
    pub next_attempt_ms: Option<u64>,
    /// Error of the last attempt.
    pub last_error: Option<String>,
}

/// Pending events of a consumer. The list may be up to one second out of date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingList {
    /// The events, oldest first. If there are more events than requested, the list contains an arbitrary subset.
    pub pending: Vec<Pending>,
    /// Total number of pending events.
    pub total: u64,
}

pub(super) async fn list(
    events: &Events,
    consumer: &str,
    limit: usize,
) -> Result<PendingList, StoreError> {
    let PendingEvents {
        some: mut records,
        total,
    } = events.backend().pending(consumer, limit).await?;
    records.sort_unstable_by_key(|(id, _)| (id.position, id.bucket));
    let pending = records.iter().filter_map(|(_, record)| {
        let record = Record::read(record)?;
        Some(Pending {
            event: record.event,
            attempts: record.attempts,
            first_attempt_ms: record.first_attempt_ms,
            next_attempt_ms: (record.next_attempt_ms > 0).then_some(record.next_attempt_ms),
            last_error: record.last_error,
        })
    });
    Ok(PendingList {
        pending: pending.collect(),
        total,
    })
}
