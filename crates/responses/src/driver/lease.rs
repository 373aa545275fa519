use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{CHECK_EVERY, Driver, Stop};
use crate::values::request::ResponseContext;
use threadkeep_service::ServiceError;
use threadkeep_store::{ScopeParts, WriteError};

/// Maximum interval between renewals of the driver's lease. A renewal also extends the thread's lifetime, and checks
/// that the thread exists and is still reserved for the response.
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// Time of the last successful store call of this driver. A recent call shows that the response still belongs to the
/// driver.
#[derive(Debug)]
pub(crate) struct LastStep(Mutex<Instant>);

impl LastStep {
    pub(crate) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(crate) fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn age(&self) -> Duration {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.elapsed()
    }
}

impl Driver<'_> {
    /// Renews the lease at intervals until this driver loses the response. Renews less often while other store calls
    /// succeed, because those calls also detect the loss.
    pub(crate) async fn wait_until_lost(&self, context: ResponseContext) -> Stop {
        let renew = RENEW_EVERY.min(self.shared.limits.lease / 3);
        let interval = CHECK_EVERY.min(renew);
        // random, because responses that start together would otherwise renew their leases together and slow down Redis
        let mut pause = interval.mul_f64(rand::random());
        let mut renewed_at = Instant::now();
        loop {
            sleep(pause).await;
            pause = interval;
            if self.last_step.age() < interval && renewed_at.elapsed() + interval / 2 <= renew {
                continue;
            }
            let sent_at = Instant::now();
            match self.renew_lease(self.shared.limits.lease).await {
                Ok(()) => renewed_at = sent_at,
                Err(WriteError::Refused(refusal)) => return ServiceError::from(refusal).into(),
                Err(WriteError::Store(_)) => continue,
            }
            // the read extends the session's lifetime, which renewing the lease does not do
            if context == ResponseContext::Session {
                let read = self.shared.scopes.read(self.scope, &ScopeParts::RECORD);
                drop(read.await);
            }
        }
    }

    async fn renew_lease(&self, lease: Duration) -> Result<(), WriteError> {
        let responses = &self.shared.responses;
        responses
            .keep_response(&self.id, self.scope, self.token, lease)
            .await
    }

    /// Releases the response so that another driver can resume it immediately, or after the lease expires if the call
    /// fails. Returns whether this driver still had the response.
    pub(crate) async fn release(&self) -> bool {
        let released = self.renew_lease(Duration::ZERO).await;
        if let Err(WriteError::Store(error)) = &released {
            tracing::debug!(%error, "response not released: its lease expires by itself");
        }
        released.is_ok()
    }
}
