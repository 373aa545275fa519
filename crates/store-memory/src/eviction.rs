//! Makes room when the budget is used up.

use super::{BATCH, Shards};
use threadkeep_store::StoreError;

/// Archives and events that one write evicts at most. They are as large as the largest write even if all
/// are as small as can be, so a flood of large writes cannot outrun its own evictions.
const MOST_FOR_A_WRITE: usize = 4_096;

/// The result of an attempt to evict something.
enum Eviction {
    /// There was room by then: others that write have made it, and may have used it up since.
    Needless,
    Impossible,
    /// So many archives and events are gone; 0: those that were the oldest went otherwise meanwhile.
    Done(usize),
}

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
        // it need not be there for long: others that write at once may use it up at the next moment
        while self.budget.excess(limit_bytes).is_some() {
            match self.evict(limit_bytes) {
                Eviction::Needless => return true,
                Eviction::Done(evicted) if evicted < left => left -= evicted.max(1),
                Eviction::Done(_) => return self.budget.excess(limit_bytes).is_none(),
                Eviction::Impossible => return false,
            }
        }
        true
    }

    /// Frees the excess. A store that was full frees some more, so that the next write does not fill it again.
    pub(super) fn relax(&self) {
        let below_bytes = match self.budget.is_full() {
            true => self.budget.relaxed_bytes(),
            false => self.budget.limit_bytes(),
        };
        while let Eviction::Done(_) = self.evict(below_bytes) {}
        self.budget.look();
    }

    /// Evicts some of the oldest archives and events, unless fewer than `below_bytes` are in use already.
    fn evict(&self, below_bytes: u64) -> Eviction {
        // freed after both locks
        let mut gone = Vec::new();
        // or several writers would evict for each other's excess, and not the oldest
        let _alone = super::lock(&self.evicting);
        let Some(excess) = self.budget.excess(below_bytes) else {
            return Eviction::Needless;
        };
        let Some((index, until_ms)) = self.oldest() else {
            return Eviction::Impossible;
        };
        let mut shard = self.hold(index);
        let evicted = shard.past.evict(until_ms, excess, BATCH, &mut gone);
        drop(shard);
        self.budget.evicted(evicted);
        Eviction::Done((evicted.archives + evicted.events) as usize)
    }

    /// The shard that has the oldest of what may be evicted, and the time up to which all others have
    /// nothing.
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
