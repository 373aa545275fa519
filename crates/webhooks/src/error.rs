//! Errors of changes to endpoints.

use super::EndpointUrlError;
use threadkeep_store::StoreError;

/// Errors that a caller can tell apart.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is no such endpoint.
    #[error("the endpoint does not exist")]
    NotFound,
    /// The settings define it, and only they can change it.
    #[error("only the server's settings can change the endpoint")]
    Configured,
    /// The maximum of endpoints exists already.
    #[error("there are {0} endpoints already")]
    TooMany(usize),
    /// Deliveries may not go to this address.
    #[error("invalid URL: {0}")]
    Url(#[from] EndpointUrlError),
    /// Too many concurrent changes of the endpoint.
    #[error("the endpoint is changing; retry later")]
    Contended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
