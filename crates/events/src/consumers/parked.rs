use super::Record;
use crate::Events;
use threadkeep_domain::{Event, EventId, Position};
use threadkeep_store::StoreError;

const EVENTS_PER_CALL: usize = 200;
/// Highest sequence number that fits in the text form of an event id. Sequence numbers start over every millisecond.
const SEQ_MAX: u64 = (1 << 40) - 1;

/// An event that is retried only if a replay is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The event itself.
    pub event: Event,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the first attempt, in milliseconds since the Unix epoch.
    pub first_attempt_ms: u64,
    /// Error of the last attempt.
    pub last_error: String,
}

/// A page of parked events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedPage {
    /// Oldest first.
    pub parked: Vec<Parked>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<EventId>,
}

pub(super) async fn page(
    events: &Events,
    consumer: &str,
    after: Option<EventId>,
    limit: usize,
) -> Result<ParkedPage, StoreError> {
    let mut records = events.backend().parked(consumer, after, limit + 1).await?;
    let has_more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().map(|(id, _)| *id);
    let parked = records.iter().filter_map(|(id, record)| {
        let Record {
            event,
            attempts,
            first_attempt_ms,
            last_error,
            ..
        } = read(events, consumer, *id, record)?;
        Some(Parked {
            event,
            attempts,
            first_attempt_ms: first_attempt_ms.unwrap_or_default(),
            last_error: last_error.unwrap_or_default(),
        })
    });
    Ok(ParkedPage {
        parked: parked.collect(),
        next: last.filter(|_| has_more),
    })
}

pub(super) async fn replay_all(events: &Events, consumer: &str) -> Result<u64, StoreError> {
    let mut replayed = 0;
    let mut after = None;
    loop {
        let records = events
            .backend()
            .parked(consumer, after, EVENTS_PER_CALL)
            .await?;
        let Some((last, _)) = records.last() else {
            return Ok(replayed);
        };
        after = Some(*last);
        replayed += replay(events, consumer, &records).await?;
    }
}

pub(super) async fn replay_ids(
    events: &Events,
    consumer: &str,
    ids: &[EventId],
) -> Result<u64, StoreError> {
    let mut records = Vec::new();
    for id in ids {
        let next = events
            .backend()
            .parked(consumer, Some(before(*id)), 1)
            .await?;
        records.extend(next.into_iter().filter(|(next_id, _)| next_id == id));
    }
    replay(events, consumer, &records).await
}

async fn replay(
    events: &Events,
    consumer: &str,
    parked: &[(EventId, bytes::Bytes)],
) -> Result<u64, StoreError> {
    let records = parked.iter().filter_map(|(id, record)| {
        let record = read(events, consumer, *id, record)?.replayed();
        Some((*id, record.to_bytes()))
    });
    let records: Vec<_> = records.collect();
    if records.is_empty() {
        return Ok(0);
    }
    events.backend().replay(consumer, &records).await
}

/// Parses a record. If the record is unreadable, logs an error and returns `None`.
fn read(events: &Events, consumer: &str, id: EventId, record: &[u8]) -> Option<Record> {
    let read = Record::read(record);
    if read.is_none() {
        events.counters().unreadable.inc();
        tracing::error!(consumer, event.id = %id, "unreadable failed event skipped");
    }
    read
}

/// Returns the id before `id`, ordered by position, then bucket.
fn before(id: EventId) -> EventId {
    let Position { ms, seq } = id.position;
    let (bucket, position) = match (id.bucket, ms, seq) {
        (1.., ..) => (id.bucket - 1, id.position),
        (0, _, 1..) => (u16::MAX, Position { ms, seq: seq - 1 }),
        (0, _, 0) => {
            let ms = ms.saturating_sub(1);
            (u16::MAX, Position { ms, seq: SEQ_MAX })
        }
    };
    EventId { bucket, position }
}
