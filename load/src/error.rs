use std::io;
use std::path::PathBuf;

use goose::GooseError;
use reqwest::Url;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the api key cannot be read from {0}")]
    ApiKeyFile(PathBuf, #[source] io::Error),
    #[error("there is no api key in {0}")]
    NoApiKey(PathBuf),
    #[error("{0} is not ready")]
    NotReady(Url, #[source] reqwest::Error),
    #[error("no client can be made")]
    Client(#[source] reqwest::Error),
    /// An error from the load library, formatted with `Debug` because its `Display` output omits the cause.
    #[error("the load cannot be made: {0:?}")]
    Goose(Box<GooseError>),
    #[error("the report cannot be written to {0}")]
    Report(PathBuf, #[source] io::Error),
}

impl From<GooseError> for LoadError {
    fn from(error: GooseError) -> Self {
        Self::Goose(Box::new(error))
    }
}
