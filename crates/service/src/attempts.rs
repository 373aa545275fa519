//! Limits several calls together to the time limit for a single call, because a client waits for the total time.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::ServiceError;
use threadkeep_domain::Refusal;
use threadkeep_store::{StoreError, millis};

pub(crate) fn in_time<T, E: From<StoreError>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // an async function would store `work` twice, so each level of nesting would double the size of the future
    let too_late = move |_| Err(StoreError::Timeout(millis(limit)).into());
    timeout(limit, work).map(move |bounded| bounded.unwrap_or_else(too_late))
}

/// Runs `attempt`, and repeats it for up to `limit` while concurrent writes interfere. Fails with [`Refusal::Changed`]
/// when no time is left for another attempt.
pub(crate) async fn until_unchanged<T, F>(
    limit: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    let start = Instant::now();
    in_time(limit, async {
        loop {
            let begun = start.elapsed();
            match attempt().await {
                Err(ServiceError::Refused(Refusal::Changed)) => {
                    let now = start.elapsed();
                    // the timeout would interrupt another attempt, which might still take effect
                    if now + (now - begun) > limit {
                        return Err(Refusal::Changed.into());
                    }
                    yield_now().await;
                }
                result => return result,
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn endless_conflicts_are_not_a_store_failure() {
        let changed = || async { Err::<(), _>(Refusal::Changed.into()) };

        let ended = until_unchanged(Duration::from_millis(20), changed).await;

        assert!(matches!(
            ended,
            Err(ServiceError::Refused(Refusal::Changed))
        ));
    }
}
