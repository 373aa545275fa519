use super::{BATCH, Shards};
use threadkeep_store::StoreError;

/// Maximum number of archives and events that one write evicts. Even if all of them are as small as possible, they are
/// larger than the largest write, so a flood of writes cannot outrun eviction.
const EVICTED_PER_WRITE_MAX: usize = 4_096;

enum Eviction {
    /// Nothing was evicted, because another writer had freed enough memory.
    HasRoom,
    NothingEvictable,
    /// Number of evicted archives and events; 0 if another task removed the oldest ones first.
    Done(usize),
}

impl Shards {
    /// Admits a write that may add data, after evicting old data if necessary. Fails with [`StoreError::Full`] if
    /// eviction does not free enough memory.
    pub(super) fn admit(&self) -> Result<(), StoreError> {
        match self.has_room() {
            true => Ok(()),
            false => Err(self.budget.refuse()),
        }
    }

    /// Returns whether the store has room for a write. Evicts the oldest archives and events if necessary.
    pub(super) fn has_room(&self) -> bool {
        let limit_bytes = self.budget.limit_bytes();
        let mut remaining = EVICTED_PER_WRITE_MAX;
        // concurrent writers may use the freed memory immediately
        while self.budget.excess(limit_bytes).is_some() {
            match self.evict(limit_bytes) {
                Eviction::HasRoom => return true,
                Eviction::Done(evicted) if evicted < remaining => remaining -= evicted.max(1),
                Eviction::Done(_) => return self.budget.excess(limit_bytes).is_none(),
                Eviction::NothingEvictable => return false,
            }
        }
        true
    }

    /// Frees memory until the store is below the limit. A full store frees more memory, so that the next write does not
    /// fill it again.
    pub(super) fn free_excess(&self) {
        let below_bytes = match self.budget.is_full() {
            true => self.budget.reopen_bytes(),
            false => self.budget.limit_bytes(),
        };
        while let Eviction::Done(_) = self.evict(below_bytes) {}
        self.budget.reopen_if_freed();
    }

    /// Evicts some of the oldest archives and events, unless fewer than `below_bytes` are in use.
    fn evict(&self, below_bytes: u64) -> Eviction {
        // freed after both locks are released
        let mut removed = Vec::new();
        // one eviction at a time, because concurrent evictions would free too much, including newer data
        let _alone = super::lock(&self.evicting);
        let Some(excess) = self.budget.excess(below_bytes) else {
            return Eviction::HasRoom;
        };
        let Some((index, until_ms)) = self.oldest() else {
            return Eviction::NothingEvictable;
        };
        let mut shard = self.hold(index);
        let evicted = shard.past.evict(until_ms, excess, BATCH, &mut removed);
        drop(shard);
        self.budget.evicted(evicted);
        Eviction::Done((evicted.archives + evicted.events) as usize)
    }

    /// Returns the shard with the oldest evictable item, and the storage time of the oldest evictable item in the other
    /// shards.
    fn oldest(&self) -> Option<(usize, u64)> {
        let (mut oldest, mut second) = ((u64::MAX, 0), u64::MAX);
        for (index, shard) in self.shards.iter().enumerate() {
            let oldest_ms = shard.oldest_ms();
            if oldest_ms < oldest.0 {
                (oldest, second) = ((oldest_ms, index), oldest.0);
            } else {
                second = second.min(oldest_ms);
            }
        }
        (oldest.0 < u64::MAX).then_some((oldest.1, second))
    }
}
