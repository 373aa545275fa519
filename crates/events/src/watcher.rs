//! Makes the store log the changes to all threads that have listeners on this replica.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{EventCounters, Outage, Tail};
use threadkeep_store::{EventLog, StoreError};

/// Lifetime of a watch that is not renewed. Long enough to keep a thread watched for at least 60 s after its last
/// listener has left.
pub(super) const WATCH_LASTS: Duration = Duration::from_secs(90);
pub(super) const WATCH_AGAIN: Duration = Duration::from_secs(20);
/// Number of threads per renewal call.
const AT_ONCE: usize = 100;

/// Renews the watches of all threads with listeners. Never returns.
pub(super) async fn run(log: Arc<dyn EventLog>, tail: Tail, counters: Arc<EventCounters>) {
    let mut outage = Outage::new("watching threads with listeners");
    loop {
        let pause = match watch_all(&*log, &tail, &counters).await {
            Ok(()) => {
                outage.is_over();
                WATCH_AGAIN
            }
            Err(error) => outage.goes_on(&error),
        };
        sleep(pause).await;
    }
}

async fn watch_all(
    log: &dyn EventLog,
    tail: &Tail,
    counters: &EventCounters,
) -> Result<(), StoreError> {
    for some in tail.listeners().threads().chunks(AT_ONCE) {
        // the watch starts during the call, so an expiry time computed from `asked` is never too late
        let asked = Instant::now();
        let ids: Vec<_> = some.iter().map(|(_, id)| *id).collect();
        let watched = log.watch(&ids, WATCH_LASTS).await?;
        for ((bucket, id), watched) in some.iter().zip(watched) {
            let listeners = tail.listeners();
            let cut = listeners.note_watched(*bucket, id, asked, WATCH_LASTS, watched);
            counters.streams_cut_off.add(cut as u64);
        }
    }
    Ok(())
}
