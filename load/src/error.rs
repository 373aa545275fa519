//! Why the test could not be made.

use std::io;
use std::path::PathBuf;

use goose::GooseError;
use reqwest::Url;

/// A fault of the test itself, not of the service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The file with the api key.
    #[error("the api key cannot be read from {0}")]
    ApiKeyFile(PathBuf, #[source] io::Error),
    /// It holds no key.
    #[error("there is no api key in {0}")]
    NoApiKey(PathBuf),
    /// A host does not become ready.
    #[error("{0} is not ready")]
    NotReady(Url, #[source] reqwest::Error),
    /// No client can be made.
    #[error("no client can be made")]
    Client(#[source] reqwest::Error),
    /// The load library. The error of the load library; its own texts leave out the cause.
    #[error("the load cannot be made: {0:?}")]
    Goose(Box<GooseError>),
    /// The reports.
    #[error("the report cannot be written to {0}")]
    Report(PathBuf, #[source] io::Error),
}

impl From<GooseError> for LoadError {
    fn from(error: GooseError) -> Self {
        Self::Goose(Box::new(error))
    }
}
