//! Events that are to be delivered once more.

use super::Record;
use crate::Events;
use threadkeep_domain::Event;
use threadkeep_store::{PendingEvents, StoreError};

/// An event whose delivery has failed and will be tried again, or that waits for such an event of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The event.
    pub event: Event,
    /// How often it was tried.
    pub attempts: u32,
    /// The time of the first attempt, in milliseconds of the Unix epoch; none before it.
    pub first_attempt_ms: Option<u64>,
    /// The time of the next attempt, in milliseconds of the Unix epoch; none while it waits for another event.
    pub next_attempt_ms: Option<u64>,
    /// The error of the last attempt.
    pub last_error: Option<String>,
}

/// Some pending events of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingList {
    /// The oldest first. If there are more, these are any of them.
    pub pending: Vec<Pending>,
    /// The number of all.
    pub total: u64,
}

/// Up to `limit` of them, as the ledger has them: it is behind by a second at most.
pub(super) async fn list(
    events: &Events,
    consumer: &str,
    limit: usize,
) -> Result<PendingList, StoreError> {
    let PendingEvents { mut some, total } = events.backend().pending(consumer, limit).await?;
    some.sort_unstable_by_key(|(id, _)| (id.position, id.bucket));
    let pending = some.iter().filter_map(|(_, record)| {
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
