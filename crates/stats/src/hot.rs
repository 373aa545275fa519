//! Finds the busiest threads in a fixed amount of memory.
//!
//! The algorithm is Space-Saving (Metwally, Agrawal and El Abbadi, 2005). A thread's hash selects one of 64 partitions,
//! and the algorithm is applied to each partition separately. Each partition has 16 counters. A thread without a
//! counter takes over the smallest counter of its partition. The old count of that counter becomes the error of the new
//! count. The true count is therefore between `count - error` and `count`. A thread with more than a sixteenth of its
//! partition's total always has a counter. A sixteenth of one partition's total is about a thousandth of the total
//! across all partitions. Searching a partition reads four cache lines, and needs neither a map nor heap memory.

#[cfg(test)]
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::Slot;
use threadkeep_domain::ThreadId;

/// Hashes with a random seed, so that clients cannot choose ids that share a partition.
#[cfg(not(test))]
pub(super) type Hasher = std::hash::RandomState;
/// Makes tests reproducible.
#[cfg(test)]
pub(super) type Hasher = BuildHasherDefault<DefaultHasher>;

/// Number of partitions, which must be a power of two.
pub(super) const PARTITIONS: usize = 64;
const COUNTERS: usize = 16;

/// The counters for one kind of use in one time slot, allocated on first use.
#[derive(Debug, Default)]
pub(super) struct HotThreads(Vec<Partition>);

#[derive(Debug, Clone)]
pub(super) struct Partition {
    /// Hashes of the threads; 0 for an unused counter.
    hashes: [u64; COUNTERS],
    counts: [u64; COUNTERS],
    errors: [u64; COUNTERS],
    ids: [ThreadId; COUNTERS],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed<'a> {
    pub(super) id: &'a ThreadId,
    /// Hash of the id. Threads with equal hashes share a counter, but equal hashes are unlikely with 64 random bits.
    pub(super) hash: u64,
}

impl Slot for HotThreads {
    fn clear(&mut self) {
        self.0.fill(Partition::EMPTY);
    }
}

impl HotThreads {
    pub(super) fn add(&mut self, thread: Hashed<'_>, weight: u64) {
        if self.0.is_empty() {
            self.0 = vec![Partition::EMPTY; PARTITIONS];
        }
        let index = thread.hash >> (u64::BITS - PARTITIONS.ilog2());
        // the lowest bit is set because a hash of 0 marks an unused counter
        self.0[index as usize].add(thread.hash | 1, thread.id, weight);
    }

    pub(super) fn partition(&self, index: usize) -> Option<&Partition> {
        self.0.get(index)
    }
}

impl Partition {
    const EMPTY: Self = Self {
        hashes: [0; COUNTERS],
        counts: [0; COUNTERS],
        errors: [0; COUNTERS],
        ids: [ThreadId::MIN; COUNTERS],
    };

    fn add(&mut self, hash: u64, id: &ThreadId, weight: u64) {
        if let Some(index) = self.hashes.iter().position(|stored| *stored == hash) {
            self.counts[index] = self.counts[index].saturating_add(weight);
            return;
        }
        let mut smallest = 0;
        for index in 1..COUNTERS {
            if self.counts[index] < self.counts[smallest] {
                smallest = index;
            }
        }
        self.hashes[smallest] = hash;
        self.ids[smallest] = *id;
        self.errors[smallest] = self.counts[smallest];
        self.counts[smallest] = self.counts[smallest].saturating_add(weight);
    }

    /// Returns the hash and the id of each thread, with a lower bound for its count.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u64, ThreadId, u64)> {
        let used = (0..COUNTERS).filter(|index| self.hashes[*index] != 0);
        used.map(|index| {
            let lower_bound = self.counts[index] - self.errors[index];
            (self.hashes[index], self.ids[index], lower_bound)
        })
    }
}
