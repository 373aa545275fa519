use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::ServiceError;
use super::attempts::in_time;
use threadkeep_domain::{OwnerTag, Refusal};
use threadkeep_store::{Owners, ReservationToken, WriteError};

/// Limits the number of threads of an owner.
///
/// An owner's threads are spread over all store partitions, so one atomic step cannot count them and add a thread. A
/// write that gives a thread to an owner first reserves a slot (a place within the limit) atomically, then counts the
/// owner's listed threads and reserved slots. A slot that is not released, for example after a crash, expires.
#[derive(Debug, Clone)]
pub(super) struct OwnerLimit {
    owners: Arc<dyn Owners>,
    limit_threads: u64,
    timeout: Duration,
}

/// Lifetime of a reserved slot that is not released. Long enough for any write in flight to succeed or fail.
const SLOT_TTL: Duration = Duration::from_secs(60);
/// Maximum number of attempts to reserve a slot while concurrent writes compete for the last slots.
const ATTEMPTS: u32 = 20;
/// Time limit for writing a whole thread, which may take several calls. Must be shorter than the lifetime of a slot.
const WHOLE_THREAD_TIMEOUT: Duration = Duration::from_secs(45);

impl OwnerLimit {
    /// `timeout` limits a write as a whole. `owners` has its own timeouts.
    pub(super) fn new(owners: Arc<dyn Owners>, limit_threads: u64, timeout: Duration) -> Self {
        Self {
            owners,
            limit_threads,
            timeout,
        }
    }

    /// Reserves a slot, runs a write that gives a thread to `owner`, and releases the slot. Fails with
    /// [`Refusal::TooManyThreads`] if the owner has reached the limit.
    pub(super) async fn with_reservation<T>(
        &self,
        owner: OwnerTag,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, ServiceError> {
        let reserved = async {
            let token = self.reserve(owner).await?;
            let written = write.await;
            let is_over = match &written {
                Err(WriteError::Store(error)) => !error.is_ambiguous(),
                _ => true,
            };
            if is_over {
                self.release(owner, token).await;
            }
            Ok(written?)
        };
        in_time(self.timeout, reserved).await
    }

    /// Returns a copy of this limit with the longer time limit for writes of whole threads.
    pub(super) fn for_whole_threads(&self) -> Self {
        Self {
            timeout: self.timeout.max(WHOLE_THREAD_TIMEOUT),
            ..self.clone()
        }
    }

    async fn reserve(&self, owner: OwnerTag) -> Result<ReservationToken, ServiceError> {
        for _ in 0..ATTEMPTS {
            let token = ReservationToken(rand::random());
            let others = self.owners.reserve_thread(owner, token, SLOT_TTL).await?;
            if others + self.owners.count_owned(owner).await? < self.limit_threads {
                return Ok(token);
            }
            // the count may include threads that have just expired
            let living = self.owners.measure_owned(owner).await?.threads;
            if others + living < self.limit_threads {
                return Ok(token);
            }
            self.release(owner, token).await;
            if living >= self.limit_threads {
                break;
            }
            sleep(Duration::from_millis(rand::random_range(2..20))).await;
        }
        let limit_threads = self.limit_threads;
        Err(Refusal::TooManyThreads { limit_threads }.into())
    }

    /// Releases a slot. If the call fails, the slot expires.
    async fn release(&self, owner: OwnerTag, token: ReservationToken) {
        if let Err(error) = self.owners.release_reservation(owner, token).await {
            tracing::debug!(%error, "slot of an owner's thread not released: it counts until it expires");
        }
    }
}
