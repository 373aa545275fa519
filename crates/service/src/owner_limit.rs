//! The number of threads that an owner may have.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::ServiceError;
use super::attempts::in_time;
use threadkeep_domain::{OwnerTag, Refusal};
use threadkeep_store::{Owners, PlaceToken, WriteError};

/// Lets an owner have a limited number of threads.
///
/// An owner's threads are spread over all buckets, so no single step can count them and add one. A write that gives an
/// owner a thread therefore reserves a place first, in one step, and then counts: threads that are not listed yet have
/// their places reserved. A crash in between leaves a place that ends by itself.
#[derive(Debug, Clone)]
pub(super) struct OwnerLimit {
    owners: Arc<dyn Owners>,
    limit_threads: u64,
    timeout: Duration,
}

/// How long a place lasts that nobody releases. A write that was sent is done or lost by then.
const PLACE_LASTS: Duration = Duration::from_secs(60);
/// How often a place is asked for while concurrent writes may or may not take the last ones.
const ATTEMPTS: u32 = 20;
/// How long the write of a whole thread may take, in as many calls as its size needs: its last one still has a place.
const WHOLE_THREAD: Duration = Duration::from_secs(45);

impl OwnerLimit {
    /// A limit on threads in a store that bounds its own calls. A write may take up to `timeout` as a whole.
    pub(super) fn new(owners: Arc<dyn Owners>, limit_threads: u64, timeout: Duration) -> Self {
        Self {
            owners,
            limit_threads,
            timeout,
        }
    }

    /// Does a write that gives a thread to that owner, if there is a place for it.
    ///
    /// # Errors
    /// [`Refusal::TooManyThreads`], those of the write, or [`ServiceError::Store`].
    pub(super) async fn with_place<T>(
        &self,
        owner: OwnerTag,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, ServiceError> {
        let placed = async {
            let place = self.reserve(owner).await?;
            let written = write.await;
            let is_over = match &written {
                Err(WriteError::Store(error)) => !error.is_ambiguous(),
                _ => true,
            };
            if is_over {
                self.release(owner, place).await;
            }
            Ok(written?)
        };
        in_time(self.timeout, placed).await
    }

    /// The same limit for writes of whole threads.
    pub(super) fn for_whole_threads(&self) -> Self {
        Self {
            timeout: self.timeout.max(WHOLE_THREAD),
            ..self.clone()
        }
    }

    async fn reserve(&self, owner: OwnerTag) -> Result<PlaceToken, ServiceError> {
        for _ in 0..ATTEMPTS {
            let place = PlaceToken(rand::random());
            let others = self.owners.reserve_place(owner, place, PLACE_LASTS).await?;
            if others + self.owners.count_owned(owner).await? < self.limit_threads {
                return Ok(place);
            }
            // some of those listed may have expired a moment ago
            let living = self.owners.measure_owned(owner).await?.threads;
            if others + living < self.limit_threads {
                return Ok(place);
            }
            self.release(owner, place).await;
            if living >= self.limit_threads {
                break;
            }
            sleep(Duration::from_millis(rand::random_range(2..20))).await;
        }
        let limit_threads = self.limit_threads;
        Err(Refusal::TooManyThreads { limit_threads }.into())
    }

    /// A place that cannot be released ends by itself.
    async fn release(&self, owner: OwnerTag, place: PlaceToken) {
        if let Err(error) = self.owners.release_place(owner, place).await {
            tracing::debug!(%error, "place of an owner's thread not released: it counts until it expires");
        }
    }
}
