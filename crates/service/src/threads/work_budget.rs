use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use threadkeep_store::{StoreError, millis};

/// Maximum number of bytes that all attempts of one request together may read or merge.
///
/// Concurrent writers can make each attempt fail. Without a limit, attempts with large values would use a whole core
/// until the timeout. The limit allows over 20 attempts with the largest state and body, and practically any number of
/// attempts with small values.
const MAX_BYTES: usize = 64 * 1_048_576;

/// Number of bytes that all attempts of one request have processed.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    bytes: AtomicUsize,
    timeout: Duration,
}

impl WorkBudget {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            timeout,
        }
    }

    /// Records an attempt that processes `bytes`. The first attempt is always allowed. Above the limit, fails with
    /// [`StoreError::Timeout`], as if the attempts had continued until the timeout.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), StoreError> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before.saturating_add(bytes) > MAX_BYTES {
            return Err(StoreError::Timeout(millis(self.timeout)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_when_the_budget_is_spent() {
        let attempts = |bytes: usize| {
            let work_budget = WorkBudget::new(Duration::ZERO);
            (0..10_000)
                .take_while(|_| work_budget.spend(bytes).is_ok())
                .count()
        };

        assert_eq!(attempts(1_000), 10_000);
        assert_eq!(attempts(3 * 1_048_576), 21);
        assert_eq!(
            attempts(2 * MAX_BYTES),
            1,
            "the first attempt is always allowed"
        );
    }
}
