use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::Value;

use crate::transport::{Calls, command};
use threadkeep_store::StoreError;

/// Maximum delay until a replica notices that a consumer needs all changes.
pub(crate) const LATENESS: Duration = Duration::from_secs(1);

/// A cached copy of the key that turns on the logging of all changes. Reading the key for each write would be slow, so
/// it is read once a second. Logging is complete once every replica has seen the key.
#[derive(Debug, Default)]
pub(crate) struct Interest(Mutex<Option<Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    ahead_ms: u64,
    logs_all: bool,
    /// The key could not be read.
    is_assumed: bool,
}

impl Interest {
    /// Returns whether all changes are logged. The result is at most one second out of date.
    pub(crate) async fn logs_all(
        &self,
        calls: &Calls<'_>,
        key: &str,
        ahead_ms: u64,
    ) -> Result<bool, StoreError> {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen
            && seen.at.elapsed() < LATENESS
            && seen.ahead_ms == ahead_ms
        {
            return Ok(seen.logs_all);
        }
        // the time is taken before the read, so that the result is at least as recent as this time
        let at = Instant::now();
        let assumed = Seen {
            at,
            ahead_ms,
            logs_all: true,
            is_assumed: true,
        };
        if seen.is_some_and(|seen| seen.is_assumed) {
            // Extends the assumption, so that only this caller waits for the key while other callers continue.
            self.set(assumed);
        }
        let mut cmd = command("PTTL");
        cmd.arg(key);
        // boxed, because this rare call would otherwise enlarge the future of every write
        let ttl = match Box::pin(calls.peek(cmd)).await {
            // The node with this key is unavailable, but other nodes may accept writes. Logs all changes, because a
            // consumer would miss an unlogged change, whereas logging without a consumer is harmless.
            Err(_) if calls.has_several_servers() => {
                self.set(assumed);
                return Ok(true);
            }
            ttl => ttl?,
        };
        let seen = Seen {
            at,
            ahead_ms,
            logs_all: match ttl {
                Value::Int(ttl_ms) => u64::try_from(ttl_ms).is_ok_and(|ttl_ms| ttl_ms > ahead_ms),
                _ => false,
            },
            is_assumed: false,
        };
        self.set(seen);
        Ok(seen.logs_all)
    }

    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn set(&self, seen: Seen) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}
