//! Errors of a store.

use std::error::Error;

use threadkeep_domain::{RateLimited, Refusal};

/// A store that did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store surely did nothing: it was not reached, or it said so, or it was not even asked
    /// ([`CallRejected`](super::CallRejected)).
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The store has no room for what a write adds, and has done nothing. Reads and whatever frees
    /// memory still work.
    #[error("the store is full")]
    Full,
    /// The connection ended after the call was sent: it was done or not.
    #[error("the connection to the store ended before its answer")]
    Interrupted(#[source] Box<dyn Error + Send + Sync>),
    /// No answer in time: it was done or not, or will be.
    #[error("the store did not answer within {0} ms")]
    Timeout(u64),
    /// It was done, but fewer copies of the store had it in time than are to.
    #[error("{confirmed} of {wanted} replicas confirmed the write in time")]
    Unconfirmed {
        /// Those that have.
        confirmed: u64,
        /// As many were to.
        wanted: u16,
    },
    /// The stored data was not written by this version.
    #[error("unreadable data in the store: {0}")]
    Corrupt(&'static str),
}

impl StoreError {
    /// Whether a write may have happened despite the error.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            Self::Interrupted(_) | Self::Timeout(_) | Self::Unconfirmed { .. }
        )
    }
}

/// A write that was not done, or not surely.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It was understood and refused.
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
