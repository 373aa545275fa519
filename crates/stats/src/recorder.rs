use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Clock, Hashed, Hasher, HotThreads, Largest, Latency, Window};
use threadkeep_domain::ThreadId;

/// Records the store calls of one worker. The lock is uncontended, except while a report reads the recorder.
///
/// A recorder uses up to 1.7 MiB, regardless of the number of threads, plus 3 KiB per kind of call.
#[derive(Debug)]
pub struct StoreRecorder {
    clock: Clock,
    hasher: Hasher,
    parts: Mutex<Parts>,
}

#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The number from [`Stats::kind`](super::Stats::kind).
    pub kind: usize,
    pub ended: Instant,
    pub took: Duration,
    /// True if the store failed. A rejected call is not a failure.
    pub has_failed: bool,
    pub used: Option<Use<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    pub id: &'a ThreadId,
    pub is_write: bool,
    /// Bytes of the values that were read or written.
    pub bytes: u64,
    /// Bytes of the state after the call, if known.
    pub state_bytes: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) threads: Threads,
    /// Indexed by kind; `None` for kinds that were never called.
    pub(super) calls: Vec<Option<Box<Calls>>>,
}

#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) writes: Window<HotThreads>,
    pub(super) reads: Window<HotThreads>,
    pub(super) bytes: Window<HotThreads>,
    pub(super) largest: Window<Largest>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) total: u64,
    pub(super) failures: u64,
    pub(super) durations: Window<Latency>,
}

impl StoreRecorder {
    pub(super) fn new(clock: Clock, hasher: Hasher) -> Self {
        Self {
            clock,
            hasher,
            parts: Mutex::default(),
        }
    }

    pub fn record(&self, call: &Call<'_>) {
        let slot = self.clock.slot(call.ended);
        let hash = call.used.map(|used| self.hasher.hash_one(used.id));
        let mut parts = self.parts();
        if parts.calls.len() <= call.kind {
            parts.calls.resize_with(call.kind + 1, || None);
        }
        let calls = parts.calls[call.kind].get_or_insert_default();
        calls.total += 1;
        calls.failures += u64::from(call.has_failed);
        calls.durations.at(slot).record(call.took);
        if let (Some(used), Some(hash)) = (call.used, hash) {
            parts.threads.record(slot, hash, &used, call.ended);
        }
    }

    /// Locks the statistics. Hold the guard only briefly, because the worker may be waiting for the lock.
    pub(super) fn parts(&self) -> MutexGuard<'_, Parts> {
        // ignores poisoning, because the statistics are valid even after a panic
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Threads {
    fn record(&mut self, slot: u64, hash: u64, used: &Use<'_>, seen: Instant) {
        let thread = Hashed { id: used.id, hash };
        let uses = match used.is_write {
            true => &mut self.writes,
            false => &mut self.reads,
        };
        uses.at(slot).add(thread, 1);
        if used.bytes > 0 {
            self.bytes.at(slot).add(thread, used.bytes);
        }
        if let Some(size_bytes) = used.state_bytes {
            self.largest.at(slot).add(thread, size_bytes, seen);
        }
    }
}
