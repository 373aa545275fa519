//! Several calls to the store within the time limit of one, because a client waits for all of them.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::ServiceError;
use threadkeep_domain::Refusal;
use threadkeep_store::{StoreError, millis};

/// Runs `work` for at most `limit`.
///
/// # Errors
/// Those of the work, or [`StoreError::Timeout`].
pub(crate) fn in_time<T, E: From<StoreError>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // an async function would hold the work twice, and these are nested
    let too_late = move |_| Err(StoreError::Timeout(millis(limit)).into());
    timeout(limit, work).map(move |bounded| bounded.unwrap_or_else(too_late))
}

/// Repeats `attempt` while the values that it is based on change in between, for at most `limit`.
///
/// # Errors
/// Those of the attempt, or [`StoreError::Timeout`].
pub(crate) async fn until_unchanged<T, F>(
    limit: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    in_time(limit, async {
        loop {
            match attempt().await {
                Err(ServiceError::Refused(Refusal::Changed)) => yield_now().await,
                result => return result,
            }
        }
    })
    .await
}
