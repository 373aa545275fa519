use crate::shared::Meta;

/// Identifies the exact content of a thread.
///
/// Life (the random number of one existence of the thread) and version are not enough, because a Redis that lost its
/// last second of writes reuses versions. The epoch detects this, because such a Redis was restarted or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentId {
    pub(crate) meta: Meta,
    /// Epoch of the connections that reported `meta`: see `ConnectionRegistry::epoch`.
    pub(crate) epoch: u64,
}

impl ContentId {
    pub(super) fn is_later_than(&self, other: &Self) -> bool {
        let (stamp, old) = (self.meta.stamp, other.meta.stamp);
        self.epoch == other.epoch && stamp.life == old.life && stamp.version > old.version
    }

    /// Returns whether the write that led to `self` was based on the content of `before`. `written_ms` is the time of
    /// the previous write. The times must be equal too, because a Redis that was briefly a replica can have different
    /// content with the same version, but not with the same version and time.
    pub(super) fn is_next_after(&self, before: &Self, written_ms: u64) -> bool {
        self.is_later_than(before)
            && self.meta.stamp.version == before.meta.stamp.version + 1
            && before.meta.updated_ms == written_ms
    }
}
