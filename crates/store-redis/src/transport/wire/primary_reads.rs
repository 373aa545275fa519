//! Reads that only a server that takes writes may answer.

use super::{Calls, ReplyKind, Waiter};
use crate::transport::{Command, command, key_of};

/// Such reads that were not sent yet. They go out behind one command that changes nothing, but that a server rejects if it
/// takes no writes: one that has become a replica may lag behind.
#[derive(Default)]
pub(super) struct PrimaryReads(Calls);

impl PrimaryReads {
    pub(super) fn add(&mut self, commands: &[Command], waiter: Waiter) {
        let Calls { bytes, waiters } = &mut self.0;
        if waiters.is_empty() {
            let mut guard = command("HDEL");
            // rights may be limited to keys of the store
            guard.arg(commands.first().and_then(key_of).unwrap_or_default());
            guard.arg("");
            guard.write(bytes);
        }
        for command in commands {
            command.write(bytes);
        }
        waiters.push(waiter);
    }

    /// Adds the guard and what is behind it, if there is anything, and becomes empty.
    pub(super) fn add_to(&mut self, calls: &mut Calls) {
        let callers = self.0.waiters.len();
        if callers > 0 {
            calls.bytes.append(&mut self.0.bytes);
            calls
                .waiters
                .push(Waiter::nobody(ReplyKind::Guard(callers)));
            calls.waiters.append(&mut self.0.waiters);
        }
    }
}
