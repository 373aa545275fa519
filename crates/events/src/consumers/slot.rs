use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, Failed};
use super::gaps::Gaps;
use super::{Consumer, Failure, Record, open};
use crate::lag::Oldest;
use crate::{Follower, Outage};
use threadkeep_domain::{Fingerprint, Position};
use threadkeep_store::{Heads, Holding, Ledger, LedgerChange, LedgerSignals, StoreError};

const DELIVERIES_MAX: usize = 16;
const EVENTS_PER_READ_MAX: usize = 64;
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The worker of a slot that this replica has leased. Reads logs, delivers events, and stores outcomes.
#[derive(Debug)]
pub(super) struct Slot {
    consumer: Arc<Consumer>,
    number: u16,
    buckets: Vec<u16>,
    backlog: Backlog,
    signals: LedgerSignals,
    deliveries: JoinSet<Result<(), Failure>>,
    subjects: HashMap<task::Id, Fingerprint>,
    /// Since when changes have been waiting to be stored.
    changed: Option<Instant>,
    unsent: Option<LedgerChange>,
    /// Logs that may have lost events before they were read.
    unsure: BTreeSet<u16>,
    gaps: Gaps,
    /// Index of the log to read first. Rotates, so that no log is always read last.
    first_log: usize,
    oldest: Arc<Oldest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Drained,
    /// A different replica holds the lease, or the consumer was dropped.
    Lost,
    Missing,
    /// Data was erased after the ledger was read. Events that were read before the erasure must not be delivered.
    Stale,
}

impl Slot {
    /// Delivers events, starting at the ledger's cursor, until `drain` is cancelled or the lease is lost. Once `drain`
    /// is cancelled, finishes deliveries in progress. Cancel safe, because the next lease holder repeats a delivery if
    /// its outcome was not stored.
    pub(super) async fn work(
        consumer: Arc<Consumer>,
        number: u16,
        follower: Follower,
        signals: watch::Receiver<LedgerSignals>,
        drain: CancellationToken,
    ) -> Ended {
        loop {
            let opened = tokio::select! {
                opened = Self::open(Arc::clone(&consumer), number) => opened,
                () = drain.cancelled() => return Ended::Drained,
            };
            let Some(mut slot) = opened else {
                return Ended::Missing;
            };
            let ended = tokio::select! {
                ended = slot.run(follower.clone(), signals.clone()) => ended,
                () = drain.cancelled() => {
                    slot.finish().await;
                    Ended::Drained
                }
            };
            // dropping the slot aborts its deliveries; the new slot repeats deliveries of events that still exist
            if ended != Ended::Stale {
                return ended;
            }
        }
    }

    async fn open(consumer: Arc<Consumer>, number: u16) -> Option<Self> {
        let ledger = open::load_ledger_with_retry(&consumer).await?;
        consumer.health.read(ledger.note.as_ref());
        let buckets = consumer.buckets_of(number);
        let cursors = buckets.iter().map(|bucket| {
            let cursor = ledger.cursors.get(usize::from(*bucket)).copied();
            (*bucket, cursor.unwrap_or_default())
        });
        let mut slot = Self {
            backlog: Backlog::new(consumer.timing, cursors, consumer.bytes.clone()),
            unsure: buckets.iter().copied().collect(),
            gaps: Gaps::default(),
            oldest: consumer.counters().lag.track(),
            buckets,
            consumer,
            number,
            signals: ledger.signals,
            deliveries: JoinSet::new(),
            subjects: HashMap::new(),
            changed: None,
            unsent: None,
            first_log: 0,
        };
        slot.take_pending(ledger);
        Some(slot)
    }

    async fn run(
        &mut self,
        mut follower: Follower,
        mut signals: watch::Receiver<LedgerSignals>,
    ) -> Ended {
        let mut outage = Outage::new("reading the log of events for a consumer");
        loop {
            self.start_deliveries();
            self.oldest.note(self.backlog.oldest_ms());
            if !self.commit_if_due().await {
                return match self.is_stale().await {
                    true => Ended::Stale,
                    false => Ended::Lost,
                };
            }
            let latest = *signals.borrow_and_update();
            if latest.erasures > self.signals.erasures {
                return Ended::Stale;
            }
            if latest.replays > self.signals.replays {
                if !self.reload().await {
                    return Ended::Missing;
                }
                continue;
            }
            match self.read(&follower.heads()).await {
                Ok(true) => {
                    outage.record_success();
                    self.settle_ended();
                    continue;
                }
                Ok(false) => {}
                Err(error) => sleep(outage.record_failure(&error)).await,
            }
            let pause = self.pause();
            tokio::select! {
                Some(ended) = self.deliveries.join_next_with_id() => self.settle(ended),
                true = follower.moved(), if self.backlog.room() > 0 => {}
                Ok(()) = signals.changed() => {}
                () = sleep(pause) => {}
            }
            self.settle_ended();
        }
    }

    async fn finish(&mut self) {
        let limit = self.consumer.timing.shutdown;
        let running = async {
            while let Some(ended) = self.deliveries.join_next_with_id().await {
                self.settle(ended);
            }
        };
        let _ = timeout(limit, running).await;
        let before = self.unsent.take();
        let rest = (!self.backlog.draft().is_empty()).then(|| self.backlog.take_change());
        for change in [before, rest].into_iter().flatten() {
            if let Err(error) = self.commit(&change).await {
                let consumer = &self.consumer.name;
                tracing::warn!(%error, consumer, "deliveries are repeated: their outcome could not be stored");
                return;
            }
        }
    }

    fn start_deliveries(&mut self) {
        let types = self.consumer.handler.types();
        while self.deliveries.len() < DELIVERIES_MAX {
            let now_ms = self.consumer.now_ms();
            let Some((subject, event)) = self.backlog.next(now_ms) else {
                return;
            };
            if !types.contains(event.event_type()) {
                self.backlog.succeed(subject, now_ms);
                continue;
            }
            let handler = Arc::clone(&self.consumer.handler);
            let delivery = async move { handler.deliver(&event).await };
            let started = self.deliveries.spawn(delivery);
            self.subjects.insert(started.id(), subject);
        }
    }

    fn settle_ended(&mut self) {
        while let Some(ended) = self.deliveries.try_join_next_with_id() {
            self.settle(ended);
        }
    }

    fn settle(&mut self, ended: Result<(task::Id, Result<(), Failure>), JoinError>) {
        let (id, result) = ended.unwrap_or_else(|error| {
            let failure = Failure::new("the handler panicked");
            (error.id(), Err(failure))
        });
        let Some(subject) = self.subjects.remove(&id) else {
            return;
        };
        let consumer = &self.consumer;
        let now_ms = consumer.now_ms();
        let note = match result {
            Ok(()) => {
                consumer.counters().delivered.inc();
                self.backlog.succeed(subject, now_ms);
                consumer.health.succeed()
            }
            Err(failure) => {
                consumer.counters().failed.inc();
                let note = consumer.health.fail(now_ms);
                let since = consumer.health.failing_since_ms();
                let failed = self
                    .backlog
                    .fail(subject, failure.into_text(), now_ms, since);
                if failed == Failed::Parked {
                    consumer.counters().parked.inc();
                    tracing::warn!(
                        consumer = consumer.name,
                        "event given up after 24 hours of failed deliveries"
                    );
                }
                note
            }
        };
        if let Some(note) = note {
            self.backlog.note(note);
        }
    }

    /// Reads logs that have new events, if the backlog has space for more events. Returns whether any log was read.
    async fn read(&mut self, heads: &Heads) -> Result<bool, StoreError> {
        let room = self.backlog.room();
        if room == 0 {
            // events may be deleted before there is room to read them
            self.unsure.extend(&self.buckets);
            return Ok(false);
        }
        let behind = self.behind(heads, room);
        if behind.is_empty() {
            return Ok(false);
        }
        let limit = (room / behind.len()).clamp(1, EVENTS_PER_READ_MAX);
        let read = self.consumer.backend.read_log(&behind, limit).await?;
        if self.consumer.backend.memory_use().is_some() {
            self.unsure.extend(behind.iter().map(|(bucket, _)| *bucket));
        }
        self.look_for_gaps(&behind).await?;
        let types = self.consumer.handler.types();
        for ((bucket, _), events) in behind.into_iter().zip(read) {
            let count = events.len();
            self.consumer.count_read(count);
            self.backlog.take(events, types);
            if count < limit
                && let Some(head) = heads.positions.get(usize::from(bucket))
            {
                // the read reached the end of the log, so any events missing before `head` have been deleted
                self.backlog.reach(bucket, *head);
            }
        }
        Ok(true)
    }

    fn behind(&mut self, heads: &Heads, limit: usize) -> Vec<(u16, Position)> {
        let count = self.buckets.len();
        let rotated = (0..count).map(|step| self.buckets[(self.first_log + step) % count]);
        let behind = rotated.filter_map(|bucket| {
            let head = *heads.positions.get(usize::from(bucket))?;
            let read = self.backlog.read_position(bucket)?;
            (head > read).then_some((bucket, read))
        });
        let behind: Vec<_> = behind.take(limit).collect();
        self.first_log = self.first_log.wrapping_add(1);
        behind
    }

    /// Reports logs that were trimmed beyond the positions in `read_from`. Call this after the logs were read, because
    /// logs can also be trimmed during the read.
    async fn look_for_gaps(&mut self, read_from: &[(u16, Position)]) -> Result<(), StoreError> {
        let unsure = read_from.iter();
        let unsure = unsure.filter(|(bucket, _)| self.unsure.contains(bucket));
        let (buckets, from): (Vec<_>, Vec<_>) = unsure.copied().unzip();
        if buckets.is_empty() {
            return Ok(());
        }
        let horizons = self.consumer.backend.log_horizons(&buckets).await?;
        let gaps = horizons.iter().zip(&from);
        let gaps = gaps.filter(|(horizon, from)| horizon > from).count();
        self.gaps.add(gaps, &self.consumer.name);
        for bucket in &buckets {
            self.unsure.remove(bucket);
        }
        Ok(())
    }

    /// Stores changes that have been waiting long enough. Returns false if the slot was lost or data was erased.
    async fn commit_if_due(&mut self) -> bool {
        if self.unsent.is_none() {
            match self.commit_due_in() {
                Some(Duration::ZERO) => self.unsent = Some(self.backlog.take_change()),
                _ => return true,
            }
        }
        let mut outage = Outage::new("storing the progress of a consumer");
        while let Some(change) = &self.unsent {
            match self.commit(change).await {
                Ok(true) => self.unsent = None,
                Ok(false) => return false,
                Err(error) => sleep(outage.record_failure(&error)).await,
            }
        }
        outage.record_success();
        self.changed = None;
        true
    }

    fn commit_due_in(&mut self) -> Option<Duration> {
        let draft = self.backlog.draft();
        if draft.is_empty() {
            return None;
        }
        let timing = &self.consumer.timing;
        let wait = match draft.is_urgent() {
            true => timing.batch,
            false => timing.idle_batch,
        };
        let since = *self.changed.get_or_insert_with(Instant::now);
        Some(wait.saturating_sub(since.elapsed()))
    }

    async fn commit(&self, change: &LedgerChange) -> Result<bool, StoreError> {
        let holding = Holding {
            consumer: &self.consumer.name,
            slot: self.number,
            holder: &self.consumer.holder,
            erasures: self.signals.erasures,
        };
        self.consumer.backend.commit(&holding, change).await
    }

    /// Returns whether a commit was rejected because of an erasure.
    async fn is_stale(&self) -> bool {
        let signals = self.consumer.backend.signals(&self.consumer.name).await;
        signals.is_ok_and(|signals| signals.erasures > self.signals.erasures)
    }

    /// Reads the pending events again after a replay. Returns false if the ledger does not exist.
    async fn reload(&mut self) -> bool {
        match open::load_ledger_with_retry(&self.consumer).await {
            Some(ledger) => {
                self.take_pending(ledger);
                true
            }
            None => false,
        }
    }

    fn take_pending(&mut self, ledger: Ledger) {
        self.signals.replays = ledger.signals.replays;
        let mut records: Vec<_> = ledger
            .pending
            .into_iter()
            .filter(|(id, _)| self.backlog.read_position(id.bucket).is_some())
            .filter_map(|(id, record)| {
                let read = Record::read(&record);
                if read.is_none() {
                    let consumer = &self.consumer.name;
                    self.consumer.counters.unreadable.inc();
                    tracing::error!(consumer, event.id = %id, "unreadable pending event skipped");
                }
                read
            })
            .collect();
        records.sort_by_key(|record| record.event.id.position);
        self.backlog.resume(records, self.consumer.now_ms());
    }

    fn pause(&mut self) -> Duration {
        let commit = self.commit_due_in().unwrap_or(PAUSE_MAX);
        let is_free = self.deliveries.len() < DELIVERIES_MAX;
        let due_ms = self.backlog.next_due_ms().filter(|_| is_free);
        let retry = due_ms.map_or(PAUSE_MAX, |due_ms| {
            let wait_ms = due_ms.saturating_sub(self.consumer.now_ms());
            Duration::from_millis(wait_ms).min(self.consumer.timing.tick)
        });
        commit.min(retry)
    }
}
