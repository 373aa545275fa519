//! The observations of the clients of one thread, with their times.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use threadkeep_domain::{Answer, Json, Operation, Precondition, Stamp};

use super::shown::Shown;

/// Time from just before a call until just after its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

#[derive(Debug)]
pub(super) struct Read {
    pub(super) at: Interval,
    pub(super) found: Option<(Stamp, Shown)>,
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) at: Interval,
    pub(super) stamp: Stamp,
    /// `None` if the write restored the thread from its archive.
    pub(super) change: Option<Change>,
    pub(super) answers: Vec<Answer>,
}

#[derive(Debug)]
pub(super) struct Change {
    pub(super) precondition: Option<Precondition>,
    pub(super) operations: Vec<Operation>,
    pub(super) metadata: Option<Json>,
    pub(super) ttl: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    End,
    /// Redis may have lost its last acknowledged writes.
    Loss,
    /// Redis may have lost unacknowledged writes.
    Failover,
}

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) reads: Mutex<Vec<Read>>,
    pub(super) writes: Mutex<Vec<Written>>,
    pub(super) events: Mutex<Vec<(Interval, Event)>>,
    /// The stamp (version and life) that the last recorded call returned, or the default if the thread did not exist.
    last: Mutex<Stamp>,
}

impl History {
    pub(super) fn read(&self, at: Interval, found: Option<(Stamp, Shown)>) {
        let stamp = found.as_ref().map(|(stamp, _)| *stamp);
        *self.last.lock().unwrap() = stamp.unwrap_or_default();
        self.reads.lock().unwrap().push(Read { at, found });
    }

    pub(super) fn written(&self, written: Written) {
        *self.last.lock().unwrap() = written.stamp;
        self.writes.lock().unwrap().push(written);
    }

    pub(super) fn happened(&self, at: Interval, event: Event) {
        self.events.lock().unwrap().push((at, event));
    }

    pub(super) fn last(&self) -> Stamp {
        *self.last.lock().unwrap()
    }
}

impl Interval {
    pub(super) async fn of<T>(answer: impl Future<Output = T>) -> (Self, T) {
        let start = Instant::now();
        let answer = answer.await;
        let end = Instant::now();
        (Self { start, end }, answer)
    }

    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.end < other.start
    }
}
