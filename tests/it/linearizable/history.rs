//! The observations of the clients of one thread, and their times.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use threadkeep_domain::{Answer, Json, Operation, Precondition, Stamp};

use super::shown::Shown;

/// From before a call until after its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

/// A read: the stamp and the content that was asked for, or no thread.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) at: Interval,
    pub(super) found: Option<(Stamp, Shown)>,
}

/// A write that was acknowledged.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) at: Interval,
    pub(super) stamp: Stamp,
    /// None if it restored the thread from its archive.
    pub(super) change: Option<Change>,
    /// The answers to its operations.
    pub(super) answers: Vec<Answer>,
}

/// The content of a write.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) precondition: Option<Precondition>,
    pub(super) operations: Vec<Operation>,
    pub(super) metadata: Option<Json>,
    pub(super) ttl: Option<Duration>,
}

/// Something that happens to threads besides writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The life that was there is over.
    End,
    /// Redis may have lost what it had acknowledged last, and goes on from there.
    Loss,
    /// Redis may have lost what it had not acknowledged.
    Failover,
}

/// All that was seen of one thread.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) reads: Mutex<Vec<Read>>,
    pub(super) writes: Mutex<Vec<Written>>,
    pub(super) events: Mutex<Vec<(Interval, Event)>>,
    /// One of the last stamps that were seen; the default for no thread.
    last: Mutex<Stamp>,
}

impl History {
    /// Notes what a read has found.
    pub(super) fn read(&self, at: Interval, found: Option<(Stamp, Shown)>) {
        let stamp = found.as_ref().map(|(stamp, _)| *stamp);
        *self.last.lock().unwrap() = stamp.unwrap_or_default();
        self.reads.lock().unwrap().push(Read { at, found });
    }

    /// Notes a write.
    pub(super) fn written(&self, written: Written) {
        *self.last.lock().unwrap() = written.stamp;
        self.writes.lock().unwrap().push(written);
    }

    /// Notes an event.
    pub(super) fn happened(&self, at: Interval, event: Event) {
        self.events.lock().unwrap().push((at, event));
    }

    /// A stamp that the thread had a short time ago; the default for no thread.
    pub(super) fn last(&self) -> Stamp {
        *self.last.lock().unwrap()
    }
}

impl Interval {
    /// Waits for an answer.
    pub(super) async fn of<T>(answer: impl Future<Output = T>) -> (Self, T) {
        let start = Instant::now();
        let answer = answer.await;
        let end = Instant::now();
        (Self { start, end }, answer)
    }

    /// Whether it ends before another begins.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.end < other.start
    }
}
