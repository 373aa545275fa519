use std::collections::VecDeque;

use crate::consumers::Record;
use threadkeep_domain::Position;
use threadkeep_domain::heap::Heap;

/// The events of one subject that wait for a consumer, in order.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) items: VecDeque<Item>,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) record: Record,
    /// Whether the event is pending in the ledger, or will be with the next commit. Otherwise the cursor stays before it.
    pub(super) is_pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Ready,
    Waiting(u64),
    Busy,
}

impl Item {
    /// Constant until the item is released.
    pub(super) fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.record.event.heap_bytes()
    }
}

impl Line {
    /// Whether all events are pending. A pending event must not follow one that is not: the cursor stays before the latter,
    /// and a reader that continues from there would put it behind later ones.
    pub(super) fn is_pending(&self) -> bool {
        self.items.iter().all(|item| item.is_pending)
    }

    /// Whether an event at or after `position` is pending. Then all earlier events were handled or are pending: no event is
    /// attempted before an earlier one.
    pub(super) fn is_pending_at_or_after(&self, position: Position) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.is_pending && item.record.event.id.position >= position)
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        let id = record.event.id;
        self.items.iter().any(|item| item.record.event.id == id)
    }
}
