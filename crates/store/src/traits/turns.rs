//! Turns of threads.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::WriteError;
use threadkeep_domain::{
    Access, IdempotencyKey, TakeTurn, ThreadId, TurnGranted, TurnHeld, TurnToken,
};

/// The turns of threads. They change no version, and each call moves the end of the thread.
#[async_trait]
pub trait Turns: fmt::Debug + Send + Sync {
    /// Grants a turn in an existing thread.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with `TurnTaken` while another is held, and `NoThread` without a thread.
    /// [`WriteError::Store`]: see [`StoreError::is_ambiguous`](crate::StoreError::is_ambiguous).
    async fn take_turn(
        &self,
        id: &ThreadId,
        access: Access,
        take: &TakeTurn,
    ) -> Result<TurnGranted, WriteError>;

    /// The turn that was granted to an earlier request with that idempotency key. Grants none, and moves no end.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with `IdempotencyKeyReused` if the key came with another request. [`WriteError::Store`].
    async fn recall_turn(
        &self,
        id: &ThreadId,
        access: Access,
        key: IdempotencyKey,
    ) -> Result<Option<TurnGranted>, WriteError>;

    /// Has a turn end that long from now, even if its time has passed.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with `TurnLost` if it was given back, or a later one was granted. [`WriteError::Store`].
    async fn renew_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, WriteError>;

    /// Ends a turn, and does nothing if it has ended already.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with `TurnLost` if another is held. [`WriteError::Store`].
    async fn end_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
    ) -> Result<(), WriteError>;

    /// The turn that is held now.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn get_turn(&self, id: &ThreadId, access: Access)
    -> Result<Option<TurnHeld>, WriteError>;

    /// The threads whose turns are given back from now on, on any replica, while another caller waits. Messages may be
    /// lost, so waiting callers have to look from time to time.
    fn ended_turns(&self) -> broadcast::Receiver<ThreadId>;
}
