//! Whether the changes of all threads are logged.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::Value;

use crate::transport::{Calls, command};
use threadkeep_store::StoreError;

/// The delay after which a replica may learn that a consumer wants all changes.
pub(crate) const LATENESS: Duration = Duration::from_secs(1);

/// The cached state of the mark that requests it. It is read once a second and not at each write, which would cost
/// every write; setting the mark takes effect once the last replica has seen it.
#[derive(Debug, Default)]
pub(crate) struct Interest(Mutex<Option<Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    ahead_ms: u64,
    logs_all: bool,
    /// The mark could not be looked at.
    is_assumed: bool,
}

impl Interest {
    /// Whether all changes are logged, as it was within the last second.
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
        // before it is asked, so that what is known is never older than it seems
        let at = Instant::now();
        let assumed = Seen {
            at,
            ahead_ms,
            logs_all: true,
            is_assumed: true,
        };
        if seen.is_some_and(|seen| seen.is_assumed) {
            // one looks again, the others need not wait for it
            self.set(assumed);
        }
        let mut left = command("PTTL");
        left.arg(mark);
        // in a box: it is done once a second, and would make every write larger
        let left = match Box::pin(calls.peek(left)).await {
            // The node with the mark is unavailable, and others are not. Logging for nobody does no harm, and an event
            // that is not logged is missed.
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

    /// Forgets what was seen: the mark has changed.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn set(&self, seen: Seen) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}
