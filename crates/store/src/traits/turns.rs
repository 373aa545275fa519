use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::WriteError;
use threadkeep_domain::{
    Access, IdempotencyKey, TakeTurn, ThreadId, TurnGranted, TurnHeld, TurnToken,
};

/// The turns of threads. They change no version. Each call extends the thread's lifetime unless it says otherwise.
#[async_trait]
pub trait Turns: fmt::Debug + Send + Sync {
    /// Grants a turn. Refused with `TurnTaken` while another turn is held, and with `NoThread` if the thread does not exist.
    async fn take_turn(
        &self,
        id: &ThreadId,
        access: Access,
        take: &TakeTurn,
    ) -> Result<TurnGranted, WriteError>;

    /// Returns the turn that an earlier request with `key` was granted. Grants no turn and does not extend a lifetime.
    /// Refused with `IdempotencyKeyReused` if the key came with another request.
    async fn recall_turn(
        &self,
        id: &ThreadId,
        access: Access,
        key: IdempotencyKey,
    ) -> Result<Option<TurnGranted>, WriteError>;

    /// Sets a turn to end after `ttl`, even if it has already expired. Refused with `TurnLost` if it was given back or a
    /// later one was granted.
    async fn renew_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, WriteError>;

    /// Ends a turn. Has no effect if it has already ended. Refused with `TurnLost` if another turn is held.
    async fn end_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
    ) -> Result<(), WriteError>;

    /// Returns the current turn.
    async fn get_turn(&self, id: &ThreadId, access: Access)
    -> Result<Option<TurnHeld>, WriteError>;

    /// Receives the threads whose turns end, on any replica, while another caller waits. Messages can be lost: also poll.
    fn ended_turns(&self) -> broadcast::Receiver<ThreadId>;
}
