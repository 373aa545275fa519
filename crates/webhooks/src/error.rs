use super::EndpointUrlError;
use threadkeep_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("the endpoint does not exist")]
    NotFound,
    #[error("only the server's settings can change the endpoint")]
    Configured,
    #[error("there are {0} endpoints already")]
    TooMany(usize),
    #[error("invalid URL: {0}")]
    Url(#[from] EndpointUrlError),
    #[error("the endpoint is changing; retry later")]
    Contended,
    #[error(transparent)]
    Store(#[from] StoreError),
}
