//! Makes room when the budget is used up.

use super::{BATCH, Shards};
use crate::store::StoreError;

/// Archives and events that one write evicts at most. They are as large as the largest write even if all
/// are as small as can be, so a flood of large writes cannot outrun its own evictions.
const MOST_FOR_A_WRITE: usize = 4_096;

impl Shards {
    /// Lets a write in that may add something.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room though all was evicted that may be.
    pub(super) fn admit(&self) -> Result<(), StoreError> {
        match self.has_room() {
            true => Ok(()),
            false => Err(self.budget.refuse()),
        }
    }

    /// Whether there is room, for which the oldest archives and events are evicted.
    pub(super) fn has_room(&self) -> bool {
        let limit_bytes = self.budget.limit_bytes();
        let mut left = MOST_FOR_A_WRITE;
        while left > 0 && self.budget.excess(limit_bytes).is_some() {
            match self.evict(limit_bytes) {
                0 => break,
                evicted => left = left.saturating_sub(evicted),
            }
        }
        self.budget.excess(limit_bytes).is_none()
    }

    /// Brings what is too much down. A store that was full gets some room more, so that it is not full
    /// again at the next write.
    pub(super) fn relax(&self) {
        let below_bytes = match self.budget.is_full() {
            true => self.budget.relaxed_bytes(),
            false => self.budget.limit_bytes(),
        };
        while self.evict(below_bytes) > 0 {}
        self.budget.look();
    }

    /// Evicts some of the oldest archives and events. How many; 0: there are none, or there is less
    /// than that many bytes already.
    fn evict(&self, below_bytes: u64) -> usize {
        // freed after both locks
        let mut gone = Vec::new();
        // or several writers would evict for each other's excess, and not the oldest
        let _alone = super::lock(&self.evicting);
        let Some(excess) = self.budget.excess(below_bytes) else {
            return 0;
        };
        let Some((place, until_ms)) = self.oldest() else {
            return 0;
        };
        let mut shard = self.hold(place);
        let evicted = shard.past.evict(until_ms, excess, BATCH, &mut gone);
        drop(shard);
        self.budget.evicted(evicted);
        (evicted.archives + evicted.events) as usize
    }

    /// The shard that has the oldest of what may be evicted, and the time up to which all others have
    /// nothing.
    fn oldest(&self) -> Option<(usize, u64)> {
        let (mut oldest, mut second) = ((u64::MAX, 0), u64::MAX);
        for (place, shard) in self.shards.iter().enumerate() {
            let oldest_ms = shard.oldest_ms();
            if oldest_ms < oldest.0 {
                (oldest, second) = ((oldest_ms, place), oldest.0);
            } else {
                second = second.min(oldest_ms);
            }
        }
        (oldest.0 < u64::MAX).then_some((oldest.1, second))
    }
}
