//! Tools that change no state of this service: the interface between the loop and the servers that they ask.

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

/// Bytes of the images of a response in base64. A later image fails: a response has each of its images whole.
pub(crate) const IMAGES_MAX_BYTES: usize = 8 * 1_048_576;

/// Tools that change no state of this service, so a call may run again after a crash. Those that the settings do not
/// mention are [`Unavailable`](StatelessError::Unavailable).
#[async_trait]
pub trait StatelessTools: fmt::Debug + Send + Sync {
    /// Searches the web.
    ///
    /// # Errors
    /// [`StatelessError`].
    async fn search(&self, search: &WebSearch) -> Result<Vec<SearchResult>, StatelessError>;

    /// Reads the text of a page.
    ///
    /// # Errors
    /// [`StatelessError`].
    async fn fetch(&self, fetch: &WebFetch) -> Result<String, StatelessError>;

    /// Generates an image, within that time.
    ///
    /// # Errors
    /// [`StatelessError`].
    async fn generate(
        &self,
        prompt: &str,
        left: Duration,
    ) -> Result<GeneratedImage, StatelessError>;
}

/// A page that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// The title of the page.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// An excerpt of its text.
    pub snippet: String,
}

/// An image that was generated.
#[derive(Clone, PartialEq, Eq)]
pub struct GeneratedImage {
    /// The model that generated it, by its name at the upstream.
    pub model: String,
    /// The type of the image, such as `image/png`.
    pub mime_type: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The image in base64.
    pub base64: String,
}

/// Why a call has no result, in words for the model. They say only what kind of failure it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatelessError {
    /// An argument is wrong.
    #[error("{name} must be {wanted}")]
    Mistake {
        /// The name of the argument.
        name: &'static str,
        /// The values that it may have.
        wanted: &'static str,
    },
    /// The tool is not configured, or its server is unreachable.
    #[error("{0}")]
    Unavailable(Cow<'static, str>),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(Cow<'static, str>),
}

/// A deployment without such tools.
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
    /// The error of a tool that the settings do not mention.
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
