//! The observations of the clients of one thread, and their times.

use std::sync::Mutex;
use std::time::Instant;

use threadkeep::domain::{Operation, Stamp};

/// From before a call until after its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

/// A read: the stamp and the state as JSON, or no thread.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) at: Interval,
    pub(super) found: Option<(Stamp, String)>,
}

/// A write that was acknowledged.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) at: Interval,
    pub(super) stamp: Stamp,
    pub(super) operations: Vec<Operation>,
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
