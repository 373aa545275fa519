use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use threadkeep_store::{StoreError, millis};

/// Maximum bytes that all attempts of one request may process: read values, and merged ones. Concurrent writers of a value
/// can make each attempt fail, and with large values the attempts would use a whole core until the timeout. This allows over
/// 20 attempts with the largest state and body, and practically any number of small ones.
const MAX_BYTES: usize = 64 * 1_048_576;

/// The work of all attempts of one request.
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

    /// Counts an attempt over `bytes` bytes. Always allows the first one. Fails with [`StoreError::Timeout`], as if the
    /// attempts had continued until the timeout.
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
    fn attempts_end_when_they_have_worked_on_as_much_as_they_may() {
        let attempts = |bytes: usize| {
            let work_budget = WorkBudget::new(Duration::ZERO);
            (0..10_000)
                .take_while(|_| work_budget.spend(bytes).is_ok())
                .count()
        };

        assert_eq!(attempts(1_000), 10_000);
        assert_eq!(attempts(3 * 1_048_576), 21);
        assert_eq!(attempts(2 * MAX_BYTES), 1, "the first always may");
    }
}
