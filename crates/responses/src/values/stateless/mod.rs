//! Interface through which responses call stateless tools, which do not store state.

mod items;
mod set;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use threadkeep_service::tools::{WebFetch, WebSearch};

pub use items::without_image;
pub(crate) use items::{StatelessOutcome, counted_bytes, id_prefix, image_bytes, item};
pub use set::{StatelessServer, StatelessSet};

/// Maximum total size of a response's base64-encoded images, in bytes. A call fails if its image would exceed the
/// limit, because a truncated image is useless.
pub(crate) const IMAGES_MAX_BYTES: usize = 8 * 1_048_576;

/// Runs stateless tools. They do not store state, so a call may run again after a crash. A tool that is not configured
/// returns [`Unavailable`](StatelessError::Unavailable).
#[async_trait]
pub trait StatelessTools: fmt::Debug + Send + Sync {
    async fn search(&self, search: &WebSearch) -> Result<Vec<SearchResult>, StatelessError>;

    async fn fetch(&self, fetch: &WebFetch) -> Result<String, StatelessError>;

    /// Generates an image. Fails if this takes longer than `left`.
    async fn generate(
        &self,
        prompt: &str,
        left: Duration,
    ) -> Result<GeneratedImage, StatelessError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

#[derive(Clone, PartialEq, Eq)]
pub struct GeneratedImage {
    /// Name of the model at the upstream.
    pub model: String,
    /// Media type, such as `image/png`.
    pub mime_type: &'static str,
    pub bytes: u64,
    pub base64: String,
}

/// The reason why a call has no result, as a message for the model. The message reveals only the kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatelessError {
    #[error("{name} must be {wanted}")]
    Mistake {
        name: &'static str,
        wanted: &'static str,
    },
    /// The tool is not configured, or its server is unreachable.
    #[error("{0}")]
    Unavailable(Cow<'static, str>),
    #[error("{0}")]
    Failed(Cow<'static, str>),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoStatelessTools;

#[async_trait]
impl StatelessTools for NoStatelessTools {
    async fn search(&self, _: &WebSearch) -> Result<Vec<SearchResult>, StatelessError> {
        Err(StatelessError::NOT_CONFIGURED)
    }

    async fn fetch(&self, _: &WebFetch) -> Result<String, StatelessError> {
        Err(StatelessError::NOT_CONFIGURED)
    }

    async fn generate(&self, _: &str, _: Duration) -> Result<GeneratedImage, StatelessError> {
        Err(StatelessError::NOT_CONFIGURED)
    }
}

impl StatelessError {
    /// The error of a tool that is not configured.
    pub const NOT_CONFIGURED: Self = Self::Unavailable(Cow::Borrowed("it is not configured"));
}

impl fmt::Debug for GeneratedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedImage")
            .field("mime_type", &self.mime_type)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
