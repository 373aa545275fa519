//! Calls of one script that are sent as one.

use super::{Calls, ReplyKind, Waiter};
use crate::transport::{OneOfMany, write_count, write_word};

/// Calls that are sent as one at most, so that one call of Redis takes well under a millisecond.
const MOST_CALLS: usize = 32;
/// Bytes of their arguments at most.
pub(super) const MOST_BYTES: usize = 16_384;

/// Calls of a script, each with one key, that were not sent yet. Each gets a reply of its own: Redis spends as much on the
/// call itself as on a small write.
#[derive(Default)]
pub(super) struct Batch {
    head: Vec<u8>,
    keys: Vec<u8>,
    arguments: Vec<u8>,
    /// Number of arguments.
    count: usize,
    waiters: Vec<Waiter>,
}

impl Batch {
    /// One for calls of that script.
    pub(super) fn of(call: &OneOfMany<'_>) -> Self {
        Self {
            head: call.head.to_vec(),
            ..Self::default()
        }
    }

    /// Whether such a call belongs to it.
    pub(super) fn is_of(&self, call: &OneOfMany<'_>) -> bool {
        self.head == call.head
    }

    /// Adds a call. Those before are added to `calls` if there would be too much in one.
    pub(super) fn add(&mut self, call: &OneOfMany<'_>, waiter: Waiter, calls: &mut Calls) {
        let is_too_long = self.arguments.len() + call.arguments.len() > MOST_BYTES;
        if self.waiters.len() == MOST_CALLS || is_too_long {
            self.add_to(calls);
        }
        self.keys.extend_from_slice(call.key);
        self.arguments.extend_from_slice(call.arguments);
        self.count += call.count;
        self.waiters.push(waiter);
    }

    /// Adds the one call that it comes to, if there is any, and becomes empty.
    pub(super) fn add_to(&mut self, calls: &mut Calls) {
        let keys = self.waiters.len();
        if keys == 0 {
            return;
        }
        let out = &mut calls.bytes;
        // name, digest and number of keys come first
        write_count(3 + keys + self.count, out);
        out.extend_from_slice(&self.head);
        write_word(itoa::Buffer::new().format(keys).as_bytes(), out);
        out.append(&mut self.keys);
        out.append(&mut self.arguments);
        if keys > 1 {
            calls.waiters.push(Waiter::nobody(ReplyKind::OfAll(keys)));
        }
        calls.waiters.append(&mut self.waiters);
        self.count = 0;
    }
}
