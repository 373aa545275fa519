use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::WriteError;
use threadkeep_domain::{
    Access, IdempotencyKey, Release, TakeTurn, ThreadId, TurnGranted, TurnState, TurnToken,
};

/// Grants turns, which are leases on threads. A turn does not change the thread's version. Each method extends the
/// thread's lifetime unless documented otherwise.
#[async_trait]
pub trait Turns: fmt::Debug + Send + Sync {
    /// Grants a turn. Refused with `TurnTaken` while another turn is held, and with `NoThread` if there is no thread.
    async fn take_turn(
        &self,
        id: &ThreadId,
        access: Access,
        take: &TakeTurn,
    ) -> Result<TurnGranted, WriteError>;

    /// Returns the turn that was granted to an earlier request with `key`. Does not grant a turn or extend a lifetime.
    /// Refused with `IdempotencyKeyReused` if `key` was used for a different request.
    async fn recall_turn(
        &self,
        id: &ThreadId,
        access: Access,
        key: IdempotencyKey,
    ) -> Result<Option<TurnGranted>, WriteError>;

    /// Sets a turn to expire `ttl` from now, even if the turn has already expired. Refused with `TurnLost` if the turn
    /// was ended by its holder, or if a later turn was granted.
    async fn renew_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, WriteError>;

    /// Releases a turn, even if it has expired. Has no effect if a later turn was granted and is no longer held.
    /// Refused with `TurnLost` while a different turn is held.
    async fn end_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        release: Release,
    ) -> Result<(), WriteError>;

    /// Returns the number of the last turn, and the turn itself while it is held.
    async fn get_turn(&self, id: &ThreadId, access: Access) -> Result<TurnState, WriteError>;

    /// Returns a receiver for thread ids. When a turn ends on any replica while another caller is waiting for it, the
    /// receiver gets the thread's id. Callers must also poll, because messages can be lost.
    fn ended_turns(&self) -> broadcast::Receiver<ThreadId>;
}
