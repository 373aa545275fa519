//! Ends the threads that nobody used in time, so that each end has its event.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::counters::EventCounters;
use super::outage::Outage;
use super::shares::Pool;
use crate::store::{StoreError, Upkeep};

/// Threads of one bucket that are ended in one step: the store stands still meanwhile.
const MOST: usize = 50;
/// Pauses while nothing is due.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How far the store's clock and this process' may differ. Past that one of them is wrong, and
/// threads that are still used might be ended.
const MOST_SKEW: Duration = Duration::from_secs(60);

/// The shares that the replicas have in this.
pub(super) fn pool() -> Pool {
    Pool {
        name: "reaper".into(),
        slots: 16,
        lasts: Duration::from_secs(10),
        renew_every: Duration::from_secs(3),
    }
}

/// Ends what is due in the buckets that this replica has a share in.
#[derive(Debug)]
pub(super) struct Reaper {
    pub(super) upkeep: Arc<dyn Upkeep>,
    pub(super) counters: Arc<EventCounters>,
    pub(super) pool: Pool,
    /// How many buckets there are in all.
    pub(super) buckets: u16,
    /// The slots that this replica holds.
    pub(super) held: watch::Receiver<Vec<u16>>,
    /// Since when something has been due that is not ended.
    pub(super) behind_since: Option<Instant>,
}

/// What a round came to.
enum Round {
    /// Nothing was due.
    Idle,
    /// All that was due is ended.
    Done,
    /// More is due.
    More,
    /// The clocks differ by so many milliseconds.
    Skewed(i64),
}

impl Reaper {
    /// Goes on until it is dropped.
    pub(super) async fn run(mut self) {
        let mut outage = Outage::new("threads that are due cannot be ended");
        let mut pause = SHORTEST_PAUSE;
        loop {
            pause = match self.round().await {
                Ok(Round::More) => {
                    self.note_lag(true);
                    outage.is_over();
                    continue;
                }
                Ok(Round::Done) => {
                    self.go_on(&mut outage);
                    SHORTEST_PAUSE
                }
                Ok(Round::Idle) => {
                    self.go_on(&mut outage);
                    (pause * 2).min(LONGEST_PAUSE)
                }
                Ok(Round::Skewed(skew_ms)) => {
                    self.stand_still(skew_ms);
                    LONGEST_PAUSE
                }
                Err(error) => {
                    self.note_lag(true);
                    outage.goes_on(&error)
                }
            };
            sleep(pause).await;
        }
    }

    async fn round(&mut self) -> Result<Round, StoreError> {
        let buckets = {
            let slots = self.held.borrow_and_update();
            self.pool.buckets_of(&slots, self.buckets)
        };
        if buckets.is_empty() {
            return Ok(Round::Idle);
        }
        let due = self.upkeep.due(&buckets, MOST).await?;
        if due.skew_ms.unsigned_abs() > MOST_SKEW.as_millis() as u64 {
            return Ok(Round::Skewed(due.skew_ms));
        }
        let mut round = Round::Idle;
        for (bucket, ids) in buckets.into_iter().zip(due.ids) {
            if ids.is_empty() {
                continue;
            }
            if ids.len() >= MOST {
                round = Round::More;
            } else if matches!(round, Round::Idle) {
                round = Round::Done;
            }
            let reaped = self.upkeep.end_due(bucket, &ids).await?;
            self.counters.threads_ended.add(reaped.ended);
            self.counters.threads_lost.add(reaped.lost);
            self.counters.threads_moved.add(reaped.moved);
            if self.held.has_changed().unwrap_or(true) {
                // what is another's by now, that one does
                return Ok(Round::More);
            }
        }
        Ok(round)
    }

    fn go_on(&mut self, outage: &mut Outage) {
        outage.is_over();
        self.note_lag(false);
        if self.counters.reaper_stopped.get() > 0 {
            tracing::info!("the clocks agree, threads that are due are ended again");
            self.counters.reaper_stopped.set(0);
        }
    }

    fn stand_still(&mut self, skew_ms: i64) {
        self.note_lag(true);
        if self.counters.reaper_stopped.get() == 0 {
            tracing::warn!(
                skew_ms,
                "the store's clock and this machine's differ by more than a minute; no thread is \
                 ended until they agree"
            );
            self.counters.reaper_stopped.set(1);
        }
    }

    fn note_lag(&mut self, is_behind: bool) {
        let since = self.behind_since.filter(|_| is_behind);
        let lag = since.map_or(Duration::ZERO, |since| since.elapsed());
        self.counters.reaper_lag_ms.set(lag.as_millis() as u64);
        self.behind_since = is_behind.then(|| since.unwrap_or_else(Instant::now));
    }
}
