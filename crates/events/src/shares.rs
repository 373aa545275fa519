//! Leases this replica's share of the work that is divided among all replicas.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Outage;
use threadkeep_store::Leases;

/// Time limit for releasing slots at shutdown. Slots that are not released by then become free when their leases
/// expire.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// A kind of work, divided into slots. Slot `s` contains the buckets (store partitions) `b` with `b % slots == s`.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) name: String,
    /// At least 1.
    pub(crate) slots: u16,
    pub(crate) lasts: Duration,
    pub(crate) renew_every: Duration,
}

impl Pool {
    pub(crate) fn buckets_of(&self, slots: &[u16], buckets: u16) -> Vec<u16> {
        let is_in = |bucket: &u16| slots.contains(&(bucket % self.slots));
        (0..buckets).filter(is_in).collect()
    }

    /// Leases a fair share of the slots until `stop` is cancelled, and publishes the leased slots through `held`.
    /// Removes slots from `held` when their leases may have expired.
    pub(crate) async fn hold(
        self,
        leases: Arc<dyn Leases>,
        holder: Arc<str>,
        held: watch::Sender<Vec<u16>>,
        stop: CancellationToken,
    ) {
        let hold = async {
            let mut outage = Outage::new("renewing leases");
            let mut expires_at = None;
            loop {
                // the lease starts during the call, so an expiry time computed from `requested_at` is never too late
                let requested_at = Instant::now();
                let call = leases.hold(&self.name, self.slots, &holder, self.lasts);
                match call.await {
                    Ok(slots) => {
                        outage.record_success();
                        // after the lease expired, another replica may have held the slots, so all workers stop now,
                        // and the next renewal restarts them
                        let has_expired =
                            expires_at.is_some_and(|expires_at| Instant::now() >= expires_at);
                        let is_stale = has_expired && !held.borrow().is_empty();
                        expires_at = Some(requested_at + self.lasts);
                        publish(&held, if is_stale { Vec::new() } else { slots });
                        sleep(self.renew_every).await;
                    }
                    Err(error) => {
                        let pause = outage.record_failure(&error).min(self.renew_every);
                        if expires_at.is_none_or(|expires_at| Instant::now() + pause >= expires_at)
                        {
                            publish(&held, Vec::new());
                        }
                        sleep(pause).await;
                    }
                }
            }
        };
        tokio::select! {
            () = hold => {}
            () = stop.cancelled() => {}
        }
        publish(&held, Vec::new());
        let release = timeout(RELEASE_TIMEOUT, leases.release(&self.name, &holder));
        if let Ok(Err(error)) = release.await {
            tracing::warn!(%error, pool = self.name, "leases not released: they expire by themselves");
        }
    }
}

fn publish(held: &watch::Sender<Vec<u16>>, mut slots: Vec<u16>) {
    slots.sort_unstable();
    held.send_if_modified(|current| {
        let is_new = *current != slots;
        *current = slots;
        is_new
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use threadkeep_store::{Announcements, StoreError};

    const LASTS: Duration = Duration::from_millis(100);

    #[derive(Debug, Default)]
    struct SlowOnce(AtomicU32);

    #[async_trait]
    impl Leases for SlowOnce {
        async fn hold(
            &self,
            _: &str,
            _: u16,
            _: &str,
            _: Duration,
        ) -> Result<Vec<u16>, StoreError> {
            if self.0.fetch_add(1, Ordering::Relaxed) == 1 {
                sleep(2 * LASTS).await;
            }
            Ok(vec![0])
        }

        async fn announce(
            &self,
            _: &str,
            _: &str,
            _: &[u8],
            _: Option<&[u8]>,
            _: Duration,
        ) -> Result<Announcements, StoreError> {
            Ok(Announcements::default())
        }

        async fn release(&self, _: &str, _: &str) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_expired_slot_is_given_up_before_it_is_leased_again() {
        let pool = Pool {
            name: "pool".into(),
            slots: 1,
            lasts: LASTS,
            renew_every: LASTS / 10,
        };
        let (held, mut seen) = watch::channel(Vec::new());
        let stop = CancellationToken::new();
        let holding = pool.hold(
            Arc::new(SlowOnce::default()),
            "me".into(),
            held,
            stop.clone(),
        );
        let holding = tokio::spawn(holding);

        for expected in [vec![0], vec![], vec![0]] {
            let change = timeout(Duration::from_secs(30), seen.changed()).await;
            change.unwrap().unwrap();
            assert_eq!(*seen.borrow_and_update(), expected);
        }

        stop.cancel();
        holding.await.unwrap();
    }
}
