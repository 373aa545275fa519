//! Deletes a consumer if no replica has run it for a day, for example because its endpoint was removed from the
//! settings. Otherwise, the log would keep old events for that consumer. Each replica records which consumers it runs,
//! because other replicas may have different settings.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::sleep;

use crate::Outage;
use threadkeep_store::{Backend, Clock, StoreError, millis};

/// The kind of the registry records that store when a replica last ran a consumer.
const KIND: &str = "consumers";
const CONSUMERS_MAX: usize = 10_000;
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3_600);
const ABANDONED_AFTER: Duration = Duration::from_secs(86_400);

pub(super) async fn run(backend: &dyn Backend, consumer: &str) {
    let mut outage = Outage::new("recording that a consumer is alive");
    loop {
        let pause = match note(backend, consumer, Clock::system().now_ms()).await {
            Ok(()) => {
                outage.record_success();
                HEARTBEAT_INTERVAL
            }
            Err(error) => outage.record_failure(&error),
        };
        sleep(pause).await;
    }
}

pub(crate) async fn forget_abandoned(backend: &dyn Backend) {
    let mut outage = Outage::new("looking for abandoned consumers");
    loop {
        // replicas record their own consumers first
        sleep(HEARTBEAT_INTERVAL / 2).await;
        while let Err(error) = sweep(backend, Clock::system().now_ms()).await {
            sleep(outage.record_failure(&error)).await;
        }
        outage.record_success();
        sleep(HEARTBEAT_INTERVAL / 2).await;
    }
}

pub(super) async fn forget(backend: &dyn Backend, consumer: &str) -> Result<(), StoreError> {
    backend.delete_record(KIND, consumer).await?;
    Ok(())
}

async fn note(backend: &dyn Backend, consumer: &str, now_ms: u64) -> Result<(), StoreError> {
    let records = backend.records(KIND).await?;
    let stored = records.iter().find(|(name, _)| name == consumer);
    let stored = stored.map(|(_, record)| &record[..]);
    let now = now_ms.to_string();
    backend
        .put_record(KIND, consumer, stored, now.as_bytes(), CONSUMERS_MAX)
        .await?;
    Ok(())
}

async fn sweep(backend: &dyn Backend, now_ms: u64) -> Result<(), StoreError> {
    let seen: HashMap<_, _> = backend.records(KIND).await?.into_iter().collect();
    let consumers = backend.consumers().await?;
    for consumer in seen.keys().filter(|name| !consumers.contains(name)) {
        forget(backend, consumer).await?;
    }
    for consumer in consumers {
        let Some(record) = seen.get(&consumer) else {
            note(backend, &consumer, now_ms).await?;
            continue;
        };
        let text = std::str::from_utf8(record).unwrap_or_default();
        let seen_ms: u64 = text.parse().unwrap_or(now_ms);
        if now_ms.saturating_sub(seen_ms) >= millis(ABANDONED_AFTER) {
            tracing::warn!(consumer, "consumer without replicas dropped");
            backend.drop_ledger(&consumer).await?;
            forget(backend, &consumer).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Position;
    use threadkeep_store::{EventLog as _, Ledgers as _, Registry as _};
    use threadkeep_store_memory::MemoryStore;

    #[tokio::test]
    async fn a_consumer_is_deleted_a_day_after_a_replica_last_ran_it() {
        const DAY_MS: u64 = 86_400_000;
        let store = MemoryStore::new(Clock::system());
        let start = vec![Position::default(); usize::from(store.buckets())];
        for consumer in ["running", "abandoned", "unknown"] {
            store.open_ledger(consumer, &start).await.unwrap();
        }
        note(&store, "abandoned", 0).await.unwrap();
        note(&store, "running", 0).await.unwrap();
        note(&store, "running", 1).await.unwrap();

        sweep(&store, DAY_MS).await.unwrap();

        let mut remaining = store.consumers().await.unwrap();
        remaining.sort();
        assert_eq!(remaining, ["running", "unknown"]);
        sweep(&store, 2 * DAY_MS).await.unwrap();
        assert!(store.consumers().await.unwrap().is_empty());
        assert!(store.records(KIND).await.unwrap().is_empty());
    }
}
