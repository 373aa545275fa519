use std::error::Error;
use std::sync::Arc;

/// The reason why a call was not sent. The call had no effect.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallRejected {
    /// Recent attempts to connect have failed.
    #[error("the server is unreachable")]
    Unreachable(#[source] Arc<dyn Error + Send + Sync>),
    /// The server has not answered any recent call.
    #[error("the server does not answer")]
    Silent,
    /// The queue for permits is full.
    #[error("too many calls wait for a permit")]
    Full,
    /// The deadline passed before a permit was granted.
    #[error("the call got no permit before its deadline")]
    Late,
}
