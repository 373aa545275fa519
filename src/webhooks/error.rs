//! Why something was not done with an endpoint.

use super::url::EndpointUrlError;
use crate::store::StoreError;

/// What a caller can tell apart.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is no such endpoint.
    #[error("there is no such endpoint")]
    NotFound,
    /// It is one of the settings, which alone can change it.
    #[error("the endpoint is one of the server's settings, and is changed there")]
    Configured,
    /// There are as many as there may be.
    #[error("there are {0} endpoints already")]
    TooMany(usize),
    /// Deliveries may not go there.
    #[error("the URL is not right: {0}")]
    Url(#[from] EndpointUrlError),
    /// Others change it all the time.
    #[error("others change the endpoint at the same time")]
    Contended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
