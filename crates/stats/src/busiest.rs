use std::cmp::Reverse;
use std::sync::Arc;

use super::recorder::{StoreRecorder, Threads};
use super::{Busy, HotThreads, LIST_MAX, Large, PARTITIONS, Window};

pub(super) fn busiest(
    stores: &[Arc<StoreRecorder>],
    slot: u64,
    kind: fn(&Threads) -> &Window<HotThreads>,
) -> Vec<Busy> {
    let mut busiest: Vec<Busy> = Vec::new();
    let mut counted = Vec::new();
    // merges one partition at a time, so that no worker waits long for a lock, and the merge needs little memory
    for index in 0..PARTITIONS {
        for store in stores {
            let parts = store.parts();
            let recent = kind(&parts.threads).recent(slot);
            let partitions = recent.filter_map(|threads| threads.partition(index));
            counted.extend(partitions.flat_map(|partition| partition.counted()));
        }
        counted.sort_unstable_by_key(|(hash, ..)| *hash);
        let threads = counted.chunk_by(|(one, ..), (other, ..)| one == other);
        busiest.extend(threads.map(|counts| Busy {
            id: counts[0].1,
            count: counts.iter().map(|(.., count)| count).sum(),
        }));
        busiest.sort_unstable_by_key(|busy| Reverse(busy.count));
        busiest.truncate(LIST_MAX);
        counted.clear();
    }
    busiest
}

/// Returns the largest states. Each thread appears once, with its largest size.
pub(super) fn largest(stores: &[Arc<StoreRecorder>], slot: u64) -> Vec<Large> {
    let mut largest: Vec<Large> = Vec::new();
    for store in stores {
        let parts = store.parts();
        let recent = parts.threads.largest.recent(slot);
        largest.extend(recent.flat_map(|slot| slot.states()));
    }
    let size = |state: &Large| (Reverse(state.size_bytes), Reverse(state.seen));
    largest.sort_unstable_by_key(|state| (state.hash, size(state)));
    largest.dedup_by_key(|state| state.hash);
    largest.sort_unstable_by_key(size);
    largest.truncate(LIST_MAX);
    largest
}
