use std::error::Error;

use threadkeep_domain::{RateLimited, Refusal};

/// Why a store did not confirm an operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operation had no effect. The store was unreachable or rejected the operation, or the call was [never
    /// sent](super::CallRejected).
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The store does not have enough memory for the write, which had no effect. Reads still succeed, and so do writes
    /// that free memory.
    #[error("the store is full")]
    Full,
    /// The connection ended after the call was sent. The outcome is unknown.
    #[error("the connection to the store ended before its answer")]
    Interrupted(#[source] Box<dyn Error + Send + Sync>),
    /// The store did not answer before the deadline. The call may have taken effect, or may still take effect.
    #[error("the store did not answer within {0} ms")]
    Timeout(u64),
    /// The write took effect, but too few replicas confirmed it before the timeout.
    #[error("{confirmed} of {wanted} replicas confirmed the write in time")]
    Unconfirmed {
        /// Replicas that confirmed.
        confirmed: u64,
        /// Replicas required.
        wanted: u16,
    },
    /// The stored data has a format that this version cannot read.
    #[error("unreadable data in the store: {0}")]
    Corrupt(&'static str),
}

impl StoreError {
    /// Returns whether a write may have taken effect despite the error.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            Self::Interrupted(_) | Self::Timeout(_) | Self::Unconfirmed { .. }
        )
    }
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The write was valid but refused. A refused write changes nothing.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RateLimited> for WriteError {
    fn from(limited: RateLimited) -> Self {
        Self::Refused(limited.into())
    }
}
