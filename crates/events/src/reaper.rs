//! Ends expired threads and logs an event for each end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{EventCounters, Outage, Pool};
use threadkeep_domain::ThreadId;
use threadkeep_store::{StoreError, Upkeep};

/// Maximum number of threads per bucket that one step ends. Keeps steps short, because a step blocks the store.
const THREADS_PER_STEP_MAX: usize = 50;
/// Number of buckets in one query for due threads.
const BUCKETS_PER_QUERY: usize = 16;
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum difference between the clocks of the store and this process. If the difference is larger, one clock is
/// wrong, so the reaper stops. Otherwise, it could end threads that are in use.
const SKEW_MAX: Duration = Duration::from_secs(60);

pub(super) fn pool() -> Pool {
    Pool {
        name: "reaper".into(),
        slots: 16,
        lasts: Duration::from_secs(10),
        renew_every: Duration::from_secs(3),
    }
}

#[derive(Debug)]
pub(super) struct Reaper {
    pub(super) upkeep: Arc<dyn Upkeep>,
    pub(super) counters: Arc<EventCounters>,
    pub(super) pool: Pool,
    pub(super) buckets: u16,
    pub(super) held: watch::Receiver<Vec<u16>>,
    /// When the reaper fell behind; `None` if it is not behind.
    pub(super) behind_since: Option<Instant>,
}

enum Round {
    Idle,
    Done,
    More,
    /// Difference of the clocks in milliseconds.
    Skewed(i64),
}

impl Reaper {
    pub(super) async fn run(mut self) {
        let mut outage = Outage::new("ending expired threads");
        let mut pause = SHORTEST_PAUSE;
        loop {
            pause = match self.round().await {
                Ok(Round::More) => {
                    self.note_lag(true);
                    outage.record_success();
                    continue;
                }
                Ok(Round::Done) => {
                    self.record_progress(&mut outage);
                    SHORTEST_PAUSE
                }
                Ok(Round::Idle) => {
                    self.record_progress(&mut outage);
                    (pause * 2).min(LONGEST_PAUSE)
                }
                Ok(Round::Skewed(skew_ms)) => {
                    self.record_skew(skew_ms);
                    LONGEST_PAUSE
                }
                Err(error) => {
                    self.note_lag(true);
                    outage.record_failure(&error)
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
        let mut round = Round::Idle;
        for chunk in buckets.chunks(BUCKETS_PER_QUERY) {
            let due = self.upkeep.due(chunk, THREADS_PER_STEP_MAX).await?;
            if due.skew_ms.unsigned_abs() > SKEW_MAX.as_millis() as u64 {
                return Ok(Round::Skewed(due.skew_ms));
            }
            for (bucket, ids) in chunk.iter().zip(due.ids) {
                if ids.is_empty() {
                    continue;
                }
                round = match round {
                    Round::Idle | Round::Done if ids.len() < THREADS_PER_STEP_MAX => Round::Done,
                    _ => Round::More,
                };
                self.end(*bucket, &ids).await?;
                if self.held.has_changed().unwrap_or(true) {
                    // a different replica may hold these buckets now
                    return Ok(Round::More);
                }
            }
        }
        Ok(round)
    }

    async fn end(&self, bucket: u16, ids: &[ThreadId]) -> Result<(), StoreError> {
        let reaped = self.upkeep.end_due(bucket, ids).await?;
        self.counters.threads_ended.add(reaped.ended);
        self.counters.threads_lost.add(reaped.lost);
        self.counters.threads_moved.add(reaped.moved);
        Ok(())
    }

    fn record_progress(&mut self, outage: &mut Outage) {
        outage.record_success();
        self.note_lag(false);
        if self.counters.reaper_stopped.get() > 0 {
            tracing::info!("clocks agree again: expired threads are ended");
            self.counters.reaper_stopped.set(0);
        }
    }

    fn record_skew(&mut self, skew_ms: i64) {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use threadkeep_domain::Position;
    use threadkeep_store::{Due, Reaped};

    #[derive(Debug, Default)]
    struct StubUpkeep {
        ids: Mutex<Vec<ThreadId>>,
        skew_ms: Mutex<i64>,
    }

    #[async_trait]
    impl Upkeep for StubUpkeep {
        async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError> {
            let skew_ms = *self.skew_ms.lock().unwrap();
            let mut ids = vec![Vec::new(); buckets.len()];
            let due = self.ids.lock().unwrap();
            ids[0] = due.iter().take(limit).copied().collect();
            Ok(Due { skew_ms, ids })
        }

        async fn end_due(&self, _: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError> {
            let mut due = self.ids.lock().unwrap();
            due.retain(|id| !ids.contains(id));
            Ok(Reaped {
                ended: ids.len() as u64,
                ..Reaped::default()
            })
        }

        async fn tidy(&self, _: &[u16], _: &[Option<Position>]) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn reaper(upkeep: &Arc<StubUpkeep>) -> Reaper {
        Reaper {
            upkeep: Arc::clone(upkeep) as _,
            counters: Arc::default(),
            pool: pool(),
            buckets: 16,
            held: watch::channel(vec![0]).1,
            behind_since: None,
        }
    }

    async fn run_until(reaper: Reaper, condition: impl Fn() -> bool) {
        let polling = async {
            while !condition() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = reaper.run() => {}
            () = polling => {}
            () = sleep(Duration::from_secs(30)) => panic!("the condition should become true"),
        }
    }

    #[tokio::test]
    async fn all_due_threads_are_ended_in_small_steps() {
        let upkeep = Arc::new(StubUpkeep::default());
        let ids = std::iter::repeat_with(ThreadId::random).take(3 * THREADS_PER_STEP_MAX + 1);
        upkeep.ids.lock().unwrap().extend(ids);
        // the sender is dropped, so each step is a separate round
        let reaper = reaper(&upkeep);
        let counters = Arc::clone(&reaper.counters);

        run_until(reaper, || counters.threads_ended.get() == 151).await;

        assert!(upkeep.ids.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn no_thread_is_ended_while_the_clocks_differ() {
        let upkeep = Arc::new(StubUpkeep::default());
        upkeep.ids.lock().unwrap().push(ThreadId::random());
        *upkeep.skew_ms.lock().unwrap() = -60_001;
        let (sender, held) = watch::channel(vec![0]);
        let stopped = Reaper {
            held: held.clone(),
            ..reaper(&upkeep)
        };
        let counters = Arc::clone(&stopped.counters);

        run_until(stopped, || counters.reaper_lag_ms.get() > 0).await;
        assert_eq!(counters.reaper_stopped.get(), 1);
        assert_eq!(upkeep.ids.lock().unwrap().len(), 1);

        *upkeep.skew_ms.lock().unwrap() = 60_000;
        let resumed = Reaper {
            held,
            counters: Arc::clone(&counters),
            ..reaper(&upkeep)
        };
        run_until(resumed, || counters.reaper_stopped.get() == 0).await;
        assert_eq!(counters.threads_ended.get(), 1);
        assert_eq!(counters.reaper_lag_ms.get(), 0);
        drop(sender);
    }
}
