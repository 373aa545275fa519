//! Deletes data past its retention, at intervals.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::{Outage, Pool};
use threadkeep_domain::Position;
use threadkeep_store::{Backend, StoreError};

const PAUSE: Duration = Duration::from_secs(60);
/// Number of buckets per call to the store.
const BUCKETS_PER_CALL: usize = 16;

pub(super) async fn run(
    backend: Arc<dyn Backend>,
    pool: Pool,
    mut held: watch::Receiver<Vec<u16>>,
) {
    let mut outage = Outage::new("deleting data past its retention");
    loop {
        let buckets = {
            let slots = held.borrow_and_update();
            pool.buckets_of(&slots, backend.buckets())
        };
        let pause = match tidy(&*backend, &buckets).await {
            Ok(()) => {
                outage.record_success();
                PAUSE
            }
            Err(error) => outage.record_failure(&error),
        };
        if buckets.is_empty() {
            // this replica has no share yet, so wait until it has one
            if held.changed().await.is_err() {
                return;
            }
        } else {
            sleep(pause).await;
        }
    }
}

async fn tidy(backend: &dyn Backend, buckets: &[u16]) -> Result<(), StoreError> {
    if buckets.is_empty() {
        return Ok(());
    }
    let slowest = slowest(backend).await?;
    for chunk in buckets.chunks(BUCKETS_PER_CALL) {
        let slowest: Vec<_> = chunk.iter().map(|bucket| slowest.of(*bucket)).collect();
        backend.tidy(chunk, &slowest).await?;
    }
    Ok(())
}

/// The cursor of the slowest consumer in each log; `None` if there are no consumers.
struct Slowest(Option<Vec<Position>>);

impl Slowest {
    fn of(&self, bucket: u16) -> Option<Position> {
        let positions = self.0.as_ref()?;
        Some(
            positions
                .get(usize::from(bucket))
                .copied()
                .unwrap_or_default(),
        )
    }
}

async fn slowest(backend: &dyn Backend) -> Result<Slowest, StoreError> {
    let mut slowest: Option<Vec<Position>> = None;
    for consumer in backend.consumers().await? {
        // a consumer that was dropped meanwhile needs no events
        let Some(cursors) = backend.load_cursors(&consumer).await? else {
            continue;
        };
        slowest = Some(match slowest {
            None => cursors,
            Some(others) => {
                let both = others.into_iter().zip(cursors);
                both.map(|(one, other)| one.min(other)).collect()
            }
        });
    }
    Ok(Slowest(slowest))
}
