//! Why something was not done with an endpoint.

use super::url::EndpointUrlError;
use crate::store::StoreError;

/// Errors that a caller can tell apart.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is no such endpoint.
    #[error("the endpoint does not exist")]
    NotFound,
    /// It is one of the settings, which alone can change it.
    #[error("only the server's settings can change the endpoint")]
    Configured,
    /// There are as many as there may be.
    #[error("there are {0} endpoints already")]
    TooMany(usize),
    /// Deliveries may not go there.
    #[error("invalid URL: {0}")]
    Url(#[from] EndpointUrlError),
    /// Others change it all the time.
    #[error("the endpoint is changing; retry later")]
    Contended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
