use super::{Calls, ReplyKind, Waiter};
use crate::transport::{Command, command, key_of};

/// Unsent reads that a replica must not answer. A guard, which is a write without effect, is sent before the reads. If
/// the server has become a replica, the guard fails, and the replies, which may be outdated, are not used.
#[derive(Default)]
pub(super) struct PrimaryReads(Calls);

impl PrimaryReads {
    pub(super) fn add(&mut self, commands: &[Command], waiter: Waiter) {
        let Calls { bytes, waiters } = &mut self.0;
        if waiters.is_empty() {
            let mut guard = command("HDEL");
            // uses one of the store's own keys for the guard, because the Redis user may not have access to other keys
            guard.arg(commands.first().and_then(key_of).unwrap_or_default());
            guard.arg("");
            guard.write(bytes);
        }
        for command in commands {
            command.write(bytes);
        }
        waiters.push(waiter);
    }

    pub(super) fn add_to(&mut self, calls: &mut Calls) {
        let callers = self.0.waiters.len();
        if callers > 0 {
            calls.bytes.append(&mut self.0.bytes);
            calls
                .waiters
                .push(Waiter::without_caller(ReplyKind::Guard(callers)));
            calls.waiters.append(&mut self.0.waiters);
        }
    }
}
