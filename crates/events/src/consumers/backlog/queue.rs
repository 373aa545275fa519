use std::collections::VecDeque;

use crate::consumers::Record;
use threadkeep_domain::Position;
use threadkeep_domain::heap::Heap;

/// The events of one subject, such as a thread, that are waiting for a consumer, in order.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) items: VecDeque<Item>,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) record: Record,
    /// True if the event is pending in the ledger, or will be after the next commit. If false, the cursor must not pass
    /// the event, because a crash would then lose the event.
    pub(super) is_pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Ready,
    Waiting(u64),
    Busy,
}

impl Item {
    /// Returns the size of the item, which does not change until the item is released.
    pub(super) fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.record.event.heap_bytes()
    }
}

impl Queue {
    /// Returns whether all events are pending. An event must not become pending while an earlier event is not pending.
    /// Otherwise, a new lease holder would load the later event before it reads the earlier event from the log.
    pub(super) fn is_pending(&self) -> bool {
        self.items.iter().all(|item| item.is_pending)
    }

    /// Returns whether an event at or after `position` is pending. If so, all earlier events were handled or are
    /// pending, because events are attempted in order.
    pub(super) fn is_pending_at_or_after(&self, position: Position) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.is_pending && item.record.event.id.position >= position)
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        let id = record.event.id;
        self.items.iter().any(|item| item.record.event.id == id)
    }
}
