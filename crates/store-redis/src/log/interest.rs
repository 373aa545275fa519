use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::Value;

use crate::transport::{Calls, command};
use threadkeep_store::StoreError;

/// Maximum delay until a replica notices that a consumer wants all changes.
pub(crate) const LATENESS: Duration = Duration::from_secs(1);

/// Cached state of the mark that requests logging. It is read once a second, because a read for each write would slow down
/// every write. Setting the mark takes effect once the last replica has seen it.
#[derive(Debug, Default)]
pub(crate) struct Interest(Mutex<Option<Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    ahead_ms: u64,
    logs_all: bool,
    /// The mark could not be read.
    is_assumed: bool,
}

impl Interest {
    /// Returns whether all changes are logged, at most one second out of date.
    pub(crate) async fn logs_all(
        &self,
        calls: &Calls<'_>,
        mark: &str,
        ahead_ms: u64,
    ) -> Result<bool, StoreError> {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen
            && seen.at.elapsed() < LATENESS
            && seen.ahead_ms == ahead_ms
        {
            return Ok(seen.logs_all);
        }
        // taken before the read, so that the result is never older than it seems
        let at = Instant::now();
        let assumed = Seen {
            at,
            ahead_ms,
            logs_all: true,
            is_assumed: true,
        };
        if seen.is_some_and(|seen| seen.is_assumed) {
            // one caller reads the mark again; the others need not wait
            self.set(assumed);
        }
        let mut left = command("PTTL");
        left.arg(mark);
        // boxed: this runs once a second, and would enlarge the future of every write
        let left = match Box::pin(calls.peek(left)).await {
            // Only the mark's node is unavailable. Logging without a reader is harmless, but an unlogged event is missed.
            Err(_) if calls.is_of_several() => {
                self.set(assumed);
                return Ok(true);
            }
            left => left?,
        };
        let seen = Seen {
            at,
            ahead_ms,
            logs_all: match left {
                Value::Int(left) => u64::try_from(left).is_ok_and(|left| left > ahead_ms),
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
