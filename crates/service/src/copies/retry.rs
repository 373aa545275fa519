use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::ServiceError;
use threadkeep_domain::{Fingerprint, IdempotencyKey, Refusal};
use threadkeep_store::{StoreError, millis};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct RequestTimes {
    /// When the server read the request. The client's timeout includes the time in the server's queue.
    pub read: Instant,
    /// Earliest time at which the client may have sent the request. The request may have waited before the server read
    /// it.
    pub sent_after: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RetryDeadline {
    deadline: Instant,
    timeout: Duration,
}

impl RequestTimes {
    #[must_use]
    pub fn now() -> Self {
        let now = Instant::now();
        Self {
            read: now,
            sent_after: now,
        }
    }
}

impl RetryDeadline {
    pub(super) fn new(times: RequestTimes, timeout: Duration) -> Self {
        Self {
            deadline: times.read + timeout,
            timeout,
        }
    }

    /// Retries a call until the deadline while the store is unavailable. A call that may have taken effect is retried
    /// only if `may_repeat` is set.
    pub(super) async fn repeat<T>(
        self,
        may_repeat: bool,
        call: impl AsyncFn() -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let calls = async {
            let mut pause = FIRST_PAUSE;
            loop {
                match call().await {
                    Err(ServiceError::Store(error)) if is_passing(&error, may_repeat) => {
                        if Instant::now() + pause > self.deadline {
                            return Err(error.into());
                        }
                        sleep(pause).await;
                        pause = (2 * pause).min(LONGEST_PAUSE);
                    }
                    answer => return answer,
                }
            }
        };
        timeout_at(self.deadline, calls)
            .await
            .unwrap_or_else(|_| Err(StoreError::Timeout(millis(self.timeout)).into()))
    }

    /// Retries a write under a new idempotency key, so that the write takes effect only once. If the thread cannot
    /// store another key, the write runs without a key, and is not retried once it may have taken effect.
    pub(super) async fn repeat_keyed<T>(
        self,
        write: impl AsyncFn(Option<IdempotencyKey>) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let key = IdempotencyKey {
            digest: Fingerprint(rand::random()),
            request: Fingerprint([0; 16]),
        };
        match self.repeat(true, async || write(Some(key)).await).await {
            Err(ServiceError::Refused(Refusal::TooManyIdempotencyKeys { .. })) => {
                self.repeat(false, async || write(None).await).await
            }
            answer => answer,
        }
    }
}

fn is_passing(error: &StoreError, may_repeat: bool) -> bool {
    match error {
        StoreError::Unavailable(_) => true,
        StoreError::Interrupted(_) | StoreError::Timeout(_) | StoreError::Unconfirmed { .. } => {
            may_repeat
        }
        // a full store usually stays full for longer than a client waits, so retries would fail
        StoreError::Full | StoreError::Corrupt(_) => false,
    }
}
