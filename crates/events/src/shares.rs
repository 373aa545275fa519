//! Leases this replica's share of the work that is divided among all replicas.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Outage;
use threadkeep_store::Leases;

/// Time limit for releasing slots at shutdown. Slots that are not released in time become free when their leases
/// expire.
const FAREWELL: Duration = Duration::from_secs(1);

/// A kind of work that is divided into slots. Slot `s` contains the buckets `b` with `b % slots == s`.
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

    /// Leases a fair share of the slots until `stop` is cancelled, and publishes the leased slots through `held`. Gives
    /// up slots whose lease may have expired.
    pub(crate) async fn hold(
        self,
        leases: Arc<dyn Leases>,
        holder: Arc<str>,
        held: watch::Sender<Vec<u16>>,
        stop: CancellationToken,
    ) {
        let hold = async {
            let mut outage = Outage::new("renewing leases");
            let mut ends = None;
            loop {
                // the lease starts during the call, so an expiry time computed from `asked` is never too late
                let asked = Instant::now();
                let call = leases.hold(&self.name, self.slots, &holder, self.lasts);
                match call.await {
                    Ok(slots) => {
                        outage.is_over();
                        // after the lease expired, another replica may have held the slots, so all workers stop now,
                        // and the next renewal restarts them
                        let ran_out = ends.is_some_and(|ends| Instant::now() >= ends);
                        let is_stale = ran_out && !held.borrow().is_empty();
                        ends = Some(asked + self.lasts);
                        tell(&held, if is_stale { Vec::new() } else { slots });
                        sleep(self.renew_every).await;
                    }
                    Err(error) => {
                        let pause = outage.goes_on(&error).min(self.renew_every);
                        if ends.is_none_or(|ends| Instant::now() + pause >= ends) {
                            tell(&held, Vec::new());
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
        tell(&held, Vec::new());
        let farewell = timeout(FAREWELL, leases.release(&self.name, &holder));
        if let Ok(Err(error)) = farewell.await {
            tracing::warn!(%error, pool = self.name, "leases not released: they expire by themselves");
        }
    }
}

fn tell(held: &watch::Sender<Vec<u16>>, mut slots: Vec<u16>) {
    slots.sort_unstable();
    held.send_if_modified(|known| {
        let is_new = *known != slots;
        *known = slots;
        is_new
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use threadkeep_store::{Heard, StoreError};

    const LASTS: Duration = Duration::from_millis(100);

    #[derive(Debug, Default)]
    struct OnceLate(AtomicU32);

    #[async_trait]
    impl Leases for OnceLate {
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

        async fn introduce(
            &self,
            _: &str,
            _: &str,
            _: &[u8],
            _: Option<&[u8]>,
            _: Duration,
        ) -> Result<Heard, StoreError> {
            Ok(Heard::default())
        }

        async fn release(&self, _: &str, _: &str) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_slot_that_ran_out_is_given_up_before_it_is_held_again() {
        let pool = Pool {
            name: "pool".into(),
            slots: 1,
            lasts: LASTS,
            renew_every: LASTS / 10,
        };
        let (held, mut seen) = watch::channel(Vec::new());
        let stop = CancellationToken::new();
        let holding = pool.hold(
            Arc::new(OnceLate::default()),
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
