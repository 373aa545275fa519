//! Counts and limits the store's memory.
//!
//! Each part of the store is behind a lock. The part's memory is counted when the lock is released, so that no change
//! is missed. The count estimates how much memory the allocator uses (`domain::heap`). Writes are accepted while the
//! count is below the limit, so each concurrent writer can exceed the limit by one write.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::past::Evicted;
use threadkeep_domain::heap::Heap;
use threadkeep_store::{MemoryUse, StoreError};

#[derive(Debug)]
pub(super) struct Budget {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    evicted_archives: AtomicU64,
    evicted_events: AtomicU64,
    /// Set when a write is rejected, and cleared when enough memory has been freed.
    is_full: AtomicBool,
}

pub(super) trait Part: Heap {
    /// Returns the time at which the oldest evictable item was stored, or [`u64::MAX`] if no item is evictable.
    fn oldest_ms(&self) -> u64 {
        u64::MAX
    }
}

#[derive(Debug)]
pub(super) struct Locked<T> {
    part: Mutex<Counted<T>>,
    oldest_ms: AtomicU64,
}

#[derive(Debug)]
struct Counted<T> {
    part: T,
    /// Bytes that the budget includes for this part.
    bytes: u64,
}

/// Guard for a locked part. Dropping the guard counts the part's memory.
#[derive(Debug)]
pub(super) struct Held<'a, T: Part> {
    counted: MutexGuard<'a, Counted<T>>,
    oldest_ms: &'a AtomicU64,
    budget: &'a Budget,
}

impl Budget {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            used_bytes: AtomicU64::new(0),
            evicted_archives: AtomicU64::new(0),
            evicted_events: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    /// Returns the size below which writes may add data.
    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Returns the size below which a full store accepts writes again. The size is a sixteenth below the limit, so that
    /// the store does not become full again after a few writes.
    pub(super) fn reopen_bytes(&self) -> u64 {
        self.limit_bytes - self.limit_bytes / 16
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Returns how many bytes must be freed so that fewer than `below_bytes` are in use, or `None` if fewer are in use
    /// already.
    pub(super) fn excess(&self, below_bytes: u64) -> Option<u64> {
        let used_bytes = self.used_bytes.load(Ordering::Relaxed);
        let excess = used_bytes.checked_sub(below_bytes)?;
        Some(excess + 1)
    }

    /// Returns the error for a rejected write. Logs only one warning until the store accepts writes again.
    pub(super) fn refuse(&self) -> StoreError {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            let limit_bytes = self.limit_bytes;
            tracing::warn!(
                limit_bytes,
                "store full: writes are rejected until threads end (see embedded_store_max_bytes)"
            );
        }
        StoreError::Full
    }

    pub(super) fn reopen_if_freed(&self) {
        if self.is_full() && self.excess(self.reopen_bytes()).is_none() {
            self.is_full.store(false, Ordering::Relaxed);
            tracing::info!("store no longer full: writes are accepted");
        }
    }

    pub(super) fn evicted(&self, evicted: Evicted) {
        self.evicted_archives
            .fetch_add(evicted.archives, Ordering::Relaxed);
        self.evicted_events
            .fetch_add(evicted.events, Ordering::Relaxed);
    }

    pub(super) fn describe(&self) -> MemoryUse {
        MemoryUse {
            limit_bytes: self.limit_bytes,
            used_bytes: self.used_bytes.load(Ordering::Relaxed),
            evicted_archives: self.evicted_archives.load(Ordering::Relaxed),
            evicted_events: self.evicted_events.load(Ordering::Relaxed),
            is_full: self.is_full(),
        }
    }
}

impl<T: Part> Locked<T> {
    pub(super) fn new(part: T) -> Self {
        Self {
            part: Mutex::new(Counted { part, bytes: 0 }),
            oldest_ms: AtomicU64::new(u64::MAX),
        }
    }

    /// Locks the part, and ignores poisoning. A panic under the lock cannot leave a partial write, because changes are
    /// computed first and then moved into the part.
    pub(super) fn hold<'a>(&'a self, budget: &'a Budget) -> Held<'a, T> {
        Held {
            counted: self.part.lock().unwrap_or_else(PoisonError::into_inner),
            oldest_ms: &self.oldest_ms,
            budget,
        }
    }

    /// Returns [`Part::oldest_ms`] as of the last change, without taking the lock.
    pub(super) fn oldest_ms(&self) -> u64 {
        self.oldest_ms.load(Ordering::Relaxed)
    }
}

impl<T: Part> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted.part
    }
}

impl<T: Part> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.counted.part
    }
}

/// Updates the shared counters only if they change, because all parts contend for them.
impl<T: Part> Drop for Held<'_, T> {
    fn drop(&mut self) {
        let (before, now) = (self.counted.bytes, self.counted.part.heap_bytes());
        if now != before {
            self.counted.bytes = now;
            // a negative difference wraps around, and the addition below wraps it back
            let change = now.wrapping_sub(before);
            self.budget.used_bytes.fetch_add(change, Ordering::Relaxed);
        }
        let oldest_ms = self.counted.part.oldest_ms();
        if oldest_ms != self.oldest_ms.load(Ordering::Relaxed) {
            self.oldest_ms.store(oldest_ms, Ordering::Relaxed);
        }
    }
}
