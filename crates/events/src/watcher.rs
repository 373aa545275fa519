//! Makes the store log the changes to all threads that have listeners on this replica.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{EventCounters, Outage, Tail};
use threadkeep_store::{EventLog, StoreError};

/// Lifetime of a watch, which makes the store log the changes to a thread. The lifetime is long enough to continue
/// logging for at least 60 s after the last listener has disconnected.
pub(super) const WATCH_LIFETIME: Duration = Duration::from_secs(90);
pub(super) const WATCH_RENEW_EVERY: Duration = Duration::from_secs(20);
/// Number of threads per renewal call.
const THREADS_PER_CALL: usize = 100;

/// Renews the watches of all threads with listeners. Never returns.
pub(super) async fn run(log: Arc<dyn EventLog>, tail: Tail, counters: Arc<EventCounters>) {
    let mut outage = Outage::new("watching threads with listeners");
    loop {
        let pause = match watch_all(&*log, &tail, &counters).await {
            Ok(()) => {
                outage.record_success();
                WATCH_RENEW_EVERY
            }
            Err(error) => outage.record_failure(&error),
        };
        sleep(pause).await;
    }
}

async fn watch_all(
    log: &dyn EventLog,
    tail: &Tail,
    counters: &EventCounters,
) -> Result<(), StoreError> {
    for chunk in tail.listeners().threads().chunks(THREADS_PER_CALL) {
        // the watch starts during the call, so an expiry time computed from `requested_at` is never too late
        let requested_at = Instant::now();
        let ids: Vec<_> = chunk.iter().map(|(_, id)| *id).collect();
        let watched = log.watch(&ids, WATCH_LIFETIME).await?;
        for ((bucket, id), watched) in chunk.iter().zip(watched) {
            let listeners = tail.listeners();
            let disconnected =
                listeners.record_watch(*bucket, id, requested_at, WATCH_LIFETIME, watched);
            counters.streams_cut_off.add(disconnected as u64);
        }
    }
    Ok(())
}
