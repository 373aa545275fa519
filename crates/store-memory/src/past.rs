use std::collections::BTreeMap;

use super::log::of_shard::Log;
use super::threads::ended_threads::{EndedThread, EndedThreads};
use super::threads::live_thread::LiveThread;
use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Completed, EndReason, Event, EventId, EventKind, Life, OwnerTag, Position, Retention, Stamp,
    ThreadId, ThreadPolicy,
};
use threadkeep_store::held_scope::{ScopeDone, appended};
use threadkeep_store::millis;
use threadkeep_trace as trace;

#[derive(Debug)]
pub(super) struct Past {
    bucket: u16,
    pub(super) retention: Retention,
    pub(super) log: Log,
    pub(super) ended_threads: EndedThreads,
    /// Erased lives of threads, with the times of their first writes. Listed while the log may contain their key names.
    pub(super) erased: BTreeMap<(OwnerTag, ThreadId, Life), u64>,
    /// Start and end of the period in which all changes are logged.
    all_watched: (u64, u64),
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evicted {
    pub(super) archives: u64,
    pub(super) events: u64,
}

/// Context of a change under a shard's lock: the thread, the time, and the log.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) id: &'a ThreadId,
    pub(super) now_ms: u64,
    pub(super) past: &'a mut Past,
}

impl Past {
    pub(super) fn new(bucket: u16, retention: Retention) -> Self {
        Self {
            bucket,
            retention,
            log: Log::default(),
            ended_threads: EndedThreads::default(),
            erased: BTreeMap::new(),
            all_watched: (0, 0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.log.len() + self.ended_threads.len()
    }

    /// Logs all changes until `until_ms`. Returns the time since which changes have been logged without interruption.
    pub(super) fn watch_all(&mut self, until_ms: u64, now_ms: u64) -> u64 {
        let (since_ms, previous_end_ms) = self.all_watched;
        // earlier changes in this millisecond were not logged
        let since_ms = if previous_end_ms > now_ms {
            since_ms
        } else {
            now_ms + 1
        };
        self.all_watched = (since_ms, previous_end_ms.max(until_ms));
        since_ms
    }

    /// Logs the effect of a write on a scope if all threads are watched. `sequence` counts the scope's events.
    pub(super) fn log_scope(
        &mut self,
        subject: &ScopeId,
        sequence: &mut u64,
        done: &ScopeDone,
        now_ms: u64,
    ) {
        if !self.is_all_watched(now_ms) {
            return;
        }
        for kind in done.events() {
            *sequence += 1;
            let event = Event {
                time_ms: now_ms,
                ..self.event(subject.clone(), done.written.stamp, *sequence, kind)
            };
            self.log.append(event, now_ms);
        }
    }

    pub(super) fn note_erased(
        &mut self,
        owner: OwnerTag,
        id: &ThreadId,
        life: Life,
        created_ms: u64,
    ) {
        self.erased.insert((owner, *id, life), created_ms);
    }

    fn event(&self, subject: ScopeId, stamp: Stamp, sequence: u64, kind: EventKind) -> Event {
        let trace = match kind.is_expiry() {
            true => None,
            false => trace::parent(),
        };
        Event {
            id: EventId {
                bucket: self.bucket,
                position: Position::default(),
            },
            subject,
            time_ms: 0,
            life: stamp.life,
            version: stamp.version,
            sequence,
            trace: trace.map(Box::new),
            kind,
        }
    }

    pub(super) fn is_all_watched(&self, now_ms: u64) -> bool {
        now_ms < self.all_watched.1
    }

    /// Returns the archive of `life`, or of the life that ended last if `life` is `None`. Returns `None` if the archive
    /// has expired or has been restored.
    pub(super) fn archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        now_ms: u64,
    ) -> Option<&EndedThread> {
        let last = self.ended_threads.get(id, life)?;
        let is_kept = last.archived_ms > self.archive_cutoff_ms(now_ms);
        (is_kept && !last.is_restored).then_some(last)
    }

    /// Returns the time up to which archives are past their retention.
    pub(super) fn archive_cutoff_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(millis(self.retention.archive))
    }

    /// Deletes up to `limit` events and up to `limit` final states past their retention. Moves final states into
    /// `removed`; the caller frees them after releasing the lock. Returns whether more may remain.
    pub(super) fn tidy(
        &mut self,
        slowest: Option<Position>,
        now_ms: u64,
        limit: usize,
        removed: &mut Vec<EndedThread>,
    ) -> bool {
        let more = self.log.tidy(now_ms, slowest, &self.retention, limit);
        let archive_cutoff_ms = self.archive_cutoff_ms(now_ms);
        let horizon = self.log.horizon();
        for _ in 0..limit {
            let Some(last) = self.ended_threads.pop_oldest(archive_cutoff_ms, horizon) else {
                self.ended_threads.shrink();
                return more;
            };
            removed.push(last);
        }
        true
    }

    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let oldest = [self.log.oldest_ms(), self.ended_threads.oldest_ms()];
        oldest.into_iter().flatten().min()
    }

    /// Deletes up to `limit` of the oldest events and final states that were stored at or before `until_ms`. Stops when
    /// `bytes` bytes have been freed.
    ///
    /// Moves final states into `removed`, which the caller frees after unlocking. As in [`Self::tidy`], a final state
    /// is deleted only after its end event.
    pub(super) fn evict(
        &mut self,
        until_ms: u64,
        bytes: u64,
        limit: usize,
        removed: &mut Vec<EndedThread>,
    ) -> Evicted {
        let mut evicted = Evicted::default();
        let before = self.heap_bytes();
        while evicted.events + evicted.archives < limit as u64
            && before.saturating_sub(self.heap_bytes()) < bytes
        {
            if let Some(last) = self.ended_threads.pop_oldest(until_ms, self.log.horizon()) {
                removed.push(last);
                evicted.archives += 1;
            } else if self.oldest_ms().is_some_and(|ms| ms <= until_ms) {
                self.log.pop();
                evicted.events += 1;
            } else {
                break;
            }
        }
        self.log.shrink();
        self.ended_threads.shrink();
        evicted
    }
}

impl Heap for Past {
    fn heap_bytes(&self) -> u64 {
        self.log.heap_bytes()
            + self.ended_threads.heap_bytes()
            + heap::tree::<((OwnerTag, ThreadId, Life), u64)>(self.erased.len())
    }
}

impl Step<'_> {
    pub(super) fn log(&mut self, living: &mut LiveThread, kind: EventKind) {
        self.log_as_of(self.now_ms, living, kind);
    }

    pub(super) fn log_completed(&mut self, living: Option<&mut LiveThread>, completed: Completed) {
        let kind = EventKind::Completed(completed);
        match living {
            Some(living) => self.log(living, kind),
            None => {
                self.append(self.now_ms, Stamp::default(), 0, kind);
            }
        }
    }

    /// Starts a new life with the content of the ended `life`. The archive of the ended life stays, because its end
    /// event may be in the log. Events of the new life continue the id's sequence numbers.
    pub(super) fn restore(
        &mut self,
        life: Option<Life>,
        policy: &ThreadPolicy,
    ) -> Option<LiveThread> {
        let life = self.past.archive(self.id, life, self.now_ms)?;
        let life = life.living.stamp.life;
        let sequence = self.past.ended_threads.sequence(self.id);
        let last = self.past.ended_threads.get_mut(self.id, life)?;
        last.is_restored = true;
        Some(last.living.revive(policy, sequence, self.now_ms))
    }

    pub(super) fn end(&mut self, mut living: LiveThread, reason: EndReason, ended_ms: u64) {
        let kind = EventKind::Destroyed {
            reason,
            state_lost: false,
        };
        let event = self.log_as_of(ended_ms, &mut living, kind);
        let last = EndedThread::new(living, reason, ended_ms, self.now_ms, event);
        self.past.ended_threads.add(self.id, last);
    }

    pub(super) fn log_erased(&mut self, living: &mut LiveThread) {
        let kind = EventKind::Destroyed {
            reason: EndReason::Erased,
            state_lost: false,
        };
        let ended_ms = living.expires_ms().min(self.now_ms);
        self.log_as_of(ended_ms, living, kind);
    }

    fn log_as_of(&mut self, time_ms: u64, living: &mut LiveThread, kind: EventKind) -> Position {
        living.sequence += 1;
        self.append(time_ms, living.stamp, living.sequence, kind)
    }

    /// Logs the effect of a write on the thread's scope. Logs changes to keys and tasks if all threads are watched, and
    /// new history items if this thread is watched.
    pub(super) fn log_scope(
        &mut self,
        living: &mut LiveThread,
        done: &ScopeDone,
        is_watched: bool,
    ) {
        let subject = ScopeId::Thread(*self.id);
        self.past
            .log_scope(&subject, &mut living.sequence, done, self.now_ms);
        if is_watched && let Some(kind) = appended(&done.written.appended) {
            self.log(living, kind);
        }
    }

    fn append(&mut self, time_ms: u64, stamp: Stamp, sequence: u64, kind: EventKind) -> Position {
        let event = Event {
            time_ms,
            ..self
                .past
                .event(ScopeId::Thread(*self.id), stamp, sequence, kind)
        };
        self.past.log.append(event, self.now_ms)
    }
}
