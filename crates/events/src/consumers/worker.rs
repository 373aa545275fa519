//! Runs a durable consumer. Leases this replica's share of the slots, and starts a worker for each leased slot.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::slot::{Ended, Slot};
use super::{Consumer, heartbeat, open};
use crate::{Outage, Tail, WATCH_LIFETIME, WATCH_RENEW_EVERY};
use threadkeep_store::{Leases, LedgerSignals};

/// If more than this many consecutive checks find that the ledger does not exist, the ledger is recreated.
const MISSING_MAX: u32 = 3;

#[derive(Debug, Default)]
struct Slots(HashMap<u16, JoinHandle<Ended>>);

impl Consumer {
    /// Runs until `stop` is cancelled, then finishes the deliveries in progress and releases the slots. `wake` triggers
    /// an immediate check for replays and erasures.
    pub(super) async fn run(
        self: Arc<Self>,
        tail: Tail,
        stop: CancellationToken,
        wake: Arc<Notify>,
    ) {
        let (held_sender, held) = watch::channel(Vec::new());
        // outcomes are stored before the lease is released
        let release = CancellationToken::new();
        let leases: Arc<dyn Leases> = Arc::clone(&self.backend) as _;
        let holder = Arc::clone(&self.holder);
        let hold = self
            .pool()
            .hold(leases, holder, held_sender, release.clone());
        let (signal, signals) = watch::channel(LedgerSignals::default());
        let work = async {
            tokio::select! {
                () = self.watch_signals(signal, &wake) => {}
                () = heartbeat::run(&*self.backend, &self.name) => {}
                () = self.renew_watch() => {}
                () = Arc::clone(&self).work(tail, held, signals, stop) => {}
            }
            release.cancel();
        };
        tokio::join!(hold, work);
    }

    async fn work(
        self: Arc<Self>,
        tail: Tail,
        mut held: watch::Receiver<Vec<u16>>,
        signals: watch::Receiver<LedgerSignals>,
        stop: CancellationToken,
    ) {
        let mut slots = Slots::default();
        let mut missing = 0;
        loop {
            let numbers = held.borrow_and_update().clone();
            let is_missing = slots.keep(&numbers).await;
            missing = if is_missing { missing + 1 } else { 0 };
            if missing > MISSING_MAX {
                self.recreate_ledger().await;
                missing = 0;
            }
            for number in numbers {
                slots.0.entry(number).or_insert_with(|| {
                    tokio::spawn(Slot::work(
                        Arc::clone(&self),
                        number,
                        tail.follow(),
                        signals.clone(),
                        stop.clone(),
                    ))
                });
            }
            tokio::select! {
                Ok(()) = held.changed() => {}
                () = sleep(self.timing.renew) => {}
                () = stop.cancelled() => break,
            }
        }
        slots.drain().await;
    }

    /// Recreates the ledger of a consumer at the end of the log, for example after the store was emptied.
    async fn recreate_ledger(&self) {
        let consumer = &self.name;
        match open::open_at_log_end(&*self.backend, &self.name).await {
            Ok(()) => tracing::error!(
                consumer,
                "delivery state lost: events before now are not delivered"
            ),
            Err(error) => {
                tracing::warn!(%error, consumer, "delivery state lost: cannot create it again yet");
            }
        }
    }

    async fn renew_watch(&self) {
        let mut outage = Outage::new("logging changes of threads for a consumer");
        loop {
            let mut pause = WATCH_RENEW_EVERY;
            if self.handler.types().has_changes() {
                match self.backend.watch_all(WATCH_LIFETIME).await {
                    Ok(_) => outage.record_success(),
                    Err(error) => pause = outage.record_failure(&error),
                }
            }
            sleep(pause).await;
        }
    }

    async fn watch_signals(&self, signal: watch::Sender<LedgerSignals>, wake: &Notify) {
        let mut outage = Outage::new("looking for requested replays and erasures");
        loop {
            let pause = match self.backend.signals(&self.name).await {
                Ok(signals) => {
                    outage.record_success();
                    signal
                        .send_if_modified(|current| std::mem::replace(current, signals) != signals);
                    self.timing.renew
                }
                Err(error) => outage.record_failure(&error),
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = wake.notified() => {}
            }
        }
    }
}

impl Slots {
    /// Immediately stops the workers of all slots that are not in `numbers`, because other replicas may hold those
    /// slots. Returns whether a worker ended because the ledger does not exist.
    async fn keep(&mut self, numbers: &[u16]) -> bool {
        let mut is_missing = false;
        for (number, task) in std::mem::take(&mut self.0) {
            if task.is_finished() {
                is_missing |= matches!(task.await, Ok(Ended::Missing));
            } else if numbers.contains(&number) {
                self.0.insert(number, task);
            } else {
                task.abort();
            }
        }
        is_missing
    }

    async fn drain(&mut self) {
        for (_, task) in self.0.drain() {
            let _ = task.await;
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for task in self.0.values() {
            task.abort();
        }
    }
}
