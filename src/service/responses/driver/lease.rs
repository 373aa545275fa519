//! The lease of a turn.

use std::time::Duration;

use tokio::time::sleep;

use super::{Driver, LOOK_EVERY, Stop};
use crate::service::ServiceError;
use crate::service::responses::request::TurnContext;
use crate::store::{ScopeParts, WriteError};

impl Driver<'_> {
    /// Gives signs of life until the turn is lost.
    pub(super) async fn until_lost(&self, context: TurnContext) -> Stop {
        let every = LOOK_EVERY.min(self.shared.limits.lease / 3);
        // turns that began together would keep Redis from answering reads once a second
        let mut pause = every.mul_f64(rand::random());
        loop {
            sleep(pause).await;
            pause = every;
            let lease = self.shared.limits.lease;
            if let Err(WriteError::Refused(refusal)) = self.keep(lease).await {
                return ServiceError::from(refusal).into();
            }
            // a store keeps threads by itself, and handles and runs have lifetimes of their own
            if context == TurnContext::Session {
                let used = self.shared.scopes.read(self.scope, &ScopeParts::RECORD);
                drop(used.await);
            }
        }
    }

    async fn keep(&self, lease: Duration) -> Result<(), WriteError> {
        let responses = &self.shared.responses;
        responses
            .keep_response(&self.id, self.scope, self.token, lease)
            .await
    }

    /// Lets another driver go on at once. If this fails, the lease ends by itself. Whether the turn was this driver's.
    pub(super) async fn release(&self) -> bool {
        let released = self.keep(Duration::ZERO).await;
        if let Err(WriteError::Store(error)) = &released {
            tracing::debug!(%error, "a turn was not released");
        }
        released.is_ok()
    }
}
