use std::collections::VecDeque;

use threadkeep_domain::heap::Heap;
use threadkeep_domain::{Event, EventId, Position, Retention, heap};
use threadkeep_store::millis;

/// Events of one shard, oldest first. Each event is in its own memory block, so deleting an event frees its memory.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Box<Event>>,
    last: Position,
    horizon: Position,
    heap_bytes: u64,
}

impl Log {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns the newest position ever assigned, or zero.
    pub(crate) fn last(&self) -> Position {
        self.last
    }

    /// Returns the position up to which events were deleted, or zero if no event was deleted.
    pub(crate) fn horizon(&self) -> Position {
        self.horizon
    }

    pub(crate) fn append(&mut self, mut event: Event, now_ms: u64) -> Position {
        let ms = self.last.ms.max(now_ms);
        let seq = if ms == self.last.ms {
            self.last.seq + 1
        } else {
            0
        };
        self.last = Position { ms, seq };
        event.id = EventId {
            position: self.last,
            ..event.id
        };
        self.heap_bytes += held_bytes(&event);
        self.events.push_back(Box::new(event));
        self.last
    }

    pub(crate) fn read(&self, after: Position, limit: usize) -> Vec<Event> {
        let from = self
            .events
            .partition_point(|event| event.id.position <= after);
        let found = self.events.range(from..).take(limit);
        found.map(|event| event.as_ref().clone()).collect()
    }

    /// Deletes up to `limit` events that are past their retention and have been handled by every consumer, or that are
    /// past the maximum retention. Returns whether more such events remain.
    pub(crate) fn tidy(
        &mut self,
        now_ms: u64,
        slowest: Option<Position>,
        retention: &Retention,
        limit: usize,
    ) -> bool {
        let handled = slowest.unwrap_or(self.last);
        let is_over = |at: Position| {
            let age_ms = now_ms.saturating_sub(at.ms);
            age_ms >= millis(retention.log) && at <= handled
                || age_ms >= millis(retention.log_max())
        };
        let mut remaining = limit;
        while let Some(event) = self.events.front()
            && is_over(event.id.position)
        {
            if remaining == 0 {
                return true;
            }
            remaining -= 1;
            self.pop();
        }
        self.shrink();
        false
    }

    /// Checks up to `limit` events after the position `after`, and deletes the unwanted events. Returns the position of
    /// the last checked event, or `None` at the end of the log.
    ///
    /// Does not change [`Self::horizon`], because readers do not need the deleted events.
    pub(crate) fn purge(
        &mut self,
        after: Position,
        limit: usize,
        is_unwanted: impl Fn(&Event) -> bool,
    ) -> Option<Position> {
        let from = self
            .events
            .partition_point(|event| event.id.position <= after);
        let end = self.events.len().min(from.saturating_add(limit));
        let (mut kept, mut last) = (from, None);
        for index in from..end {
            let event = &self.events[index];
            last = Some(event.id.position);
            if is_unwanted(event) {
                self.heap_bytes -= held_bytes(event);
            } else {
                self.events.swap(kept, index);
                kept += 1;
            }
        }
        self.events.drain(kept..end);
        last
    }

    pub(crate) fn oldest_ms(&self) -> Option<u64> {
        self.events.front().map(|event| event.id.position.ms)
    }

    pub(crate) fn pop(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.horizon = event.id.position;
            self.heap_bytes -= held_bytes(&event);
        }
    }

    pub(crate) fn shrink(&mut self) {
        if self.events.len() < self.events.capacity() / 4 {
            self.events.shrink_to_fit();
        }
    }
}

impl Heap for Log {
    fn heap_bytes(&self) -> u64 {
        heap::array::<Box<Event>>(self.events.capacity()) + self.heap_bytes
    }
}

fn held_bytes(event: &Event) -> u64 {
    heap::array::<Event>(1) + event.heap_bytes()
}
