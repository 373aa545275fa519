//! The events of one subject that wait for a consumer.

use std::collections::VecDeque;

use crate::consumers::Record;
use threadkeep_domain::Position;
use threadkeep_domain::heap::Heap;

/// The events of a subject, in order.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) items: VecDeque<Item>,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) record: Record,
    /// Whether it is pending in the ledger, or will be with the next commit; otherwise the cursor
    /// stays before it.
    pub(super) is_pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Ready,
    Waiting(u64),
    /// The first event is being delivered.
    Busy,
}

impl Item {
    /// Its size, which is the same until it is released.
    pub(super) fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.record.event.heap_bytes()
    }
}

impl Line {
    /// Whether all of it is pending. No event may be pending behind one that is not: the cursor stays before that one,
    /// and a reader that continues from there would find it behind later ones.
    pub(super) fn is_pending(&self) -> bool {
        self.items.iter().all(|item| item.is_pending)
    }

    /// Whether an event of that place or a later one is pending. Then all before it was handled, or
    /// is pending too: nothing is tried before what was logged earlier.
    pub(super) fn is_pending_at_or_after(&self, position: Position) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.is_pending && item.record.event.id.position >= position)
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        let id = record.event.id;
        self.items.iter().any(|item| item.record.event.id == id)
    }
}
