use super::{Calls, ReplyKind, Waiter};
use crate::transport::{OneOfMany, write_count, write_word};

/// Maximum number of calls in a batch. The limit keeps the script call for one batch well under a millisecond.
const CALLS_MAX: usize = 32;
pub(super) const BYTES_MAX: usize = 16_384;

/// Unsent calls to one script, each with one key and its own reply. They are sent as one script call, because the
/// overhead of a call costs Redis as much time as a small write.
#[derive(Default)]
pub(super) struct Batch {
    head: Vec<u8>,
    keys: Vec<u8>,
    arguments: Vec<u8>,
    count: usize,
    waiters: Vec<Waiter>,
}

impl Batch {
    pub(super) fn of(call: &OneOfMany<'_>) -> Self {
        Self {
            head: call.head.to_vec(),
            ..Self::default()
        }
    }

    pub(super) fn is_of(&self, call: &OneOfMany<'_>) -> bool {
        self.head == call.head
    }

    /// Adds a call. If the batch would exceed its limits, first moves the calls of the batch to `calls`.
    pub(super) fn add(&mut self, call: &OneOfMany<'_>, waiter: Waiter, calls: &mut Calls) {
        let is_too_long = self.arguments.len() + call.arguments.len() > BYTES_MAX;
        if self.waiters.len() == CALLS_MAX || is_too_long {
            self.add_to(calls);
        }
        self.keys.extend_from_slice(call.key);
        self.arguments.extend_from_slice(call.arguments);
        self.count += call.count;
        self.waiters.push(waiter);
    }

    pub(super) fn add_to(&mut self, calls: &mut Calls) {
        let keys = self.waiters.len();
        if keys == 0 {
            return;
        }
        let out = &mut calls.bytes;
        // the name, the digest and the number of keys come first
        write_count(3 + keys + self.count, out);
        out.extend_from_slice(&self.head);
        write_word(itoa::Buffer::new().format(keys).as_bytes(), out);
        out.append(&mut self.keys);
        out.append(&mut self.arguments);
        if keys > 1 {
            calls
                .waiters
                .push(Waiter::without_caller(ReplyKind::OfAll(keys)));
        }
        calls.waiters.append(&mut self.waiters);
        self.count = 0;
    }
}
