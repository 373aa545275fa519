//! Calls that are repeated while the store does not answer.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::ServiceError;
use threadkeep_domain::{Fingerprint, IdempotencyKey, Refusal};
use threadkeep_store::{StoreError, millis};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// When a client asked for something.
#[derive(Debug, Clone, Copy)]
pub struct RequestTimes {
    /// When it was read: what waits here for its turn waits at the cost of the client's patience.
    pub read: Instant,
    /// The earliest moment at which the client may have sent it, since it may have waited to be
    /// read.
    pub sent_after: Instant,
}

/// Until when a call may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryDeadline {
    deadline: Instant,
    in_all: Duration,
}

impl RequestTimes {
    /// Something that was asked for just now.
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
    /// So long from when it was asked.
    pub(super) fn new(asked: RequestTimes, in_all: Duration) -> Self {
        Self {
            deadline: asked.read + in_all,
            in_all,
        }
    }

    /// Repeats a call while the store fails, for as long as that may help; one that may have been
    /// done only where it may be done twice.
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
            .unwrap_or_else(|_| Err(StoreError::Timeout(millis(self.in_all)).into()))
    }

    /// Repeats a write under an idempotency key of its own, so that it is done once. A thread that
    /// remembers as many answers as it can is written to without one, and then not again once that
    /// may have been done.
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
        // a full store stays full for longer than a client waits
        StoreError::Full | StoreError::Corrupt(_) => false,
    }
}
