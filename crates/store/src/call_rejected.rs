//! Calls that a store does not even send.

use std::error::Error;
use std::sync::Arc;

/// Why a call was not sent. It was surely not done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallRejected {
    /// The server could not be connected to of late.
    #[error("the server is unreachable")]
    Unreachable(#[source] Arc<dyn Error + Send + Sync>),
    /// The server has answered nothing of late.
    #[error("the server does not answer")]
    Silent,
    /// As many calls as may wait for their turn do.
    #[error("too many calls wait for a permit")]
    Full,
    /// The time was up before its turn came.
    #[error("the call got no permit before its deadline")]
    Late,
}
