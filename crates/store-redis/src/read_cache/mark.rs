//! The names of the contents of a thread.

use crate::shared::Meta;

/// Names one content of one thread.
///
/// Life and version alone would not do: a Redis that has lost its last second gives the same versions out again. It has
/// started again since, or another one has taken its place, and that began a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// As every write changes it.
    pub(crate) meta: Meta,
    /// The epoch of the connections by which this is known: see `ConnectionRegistry::epoch`.
    pub(crate) epoch: u64,
}

impl Mark {
    /// Whether it is of a later version of the same life.
    pub(super) fn is_later_than(&self, other: &Self) -> bool {
        let (stamp, old) = (self.meta.stamp, other.meta.stamp);
        self.epoch == other.epoch && stamp.life == old.life && stamp.version > old.version
    }

    /// Whether the write that led to `self` was done to the content of `before`, given when the thread was last written to
    /// before that write. A Redis that was a replica for a moment, over the same connections, can have another content of that
    /// version, but not of that time as well.
    pub(super) fn is_next_after(&self, before: &Self, written_ms: u64) -> bool {
        self.is_later_than(before)
            && self.meta.stamp.version == before.meta.stamp.version + 1
            && before.meta.updated_ms == written_ms
    }
}
