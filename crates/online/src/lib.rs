//! Tools that let models call other servers: web search, web pages and image generation.
//!
//! The results come from untrusted servers. The size of a result and the duration of a call are limited, and the model
//! receives results as data, never as instructions. Errors, logs and `Debug` output contain no queries, URLs or text.

mod body;
mod fetch;
mod images;
#[cfg(test)]
mod scripted;
mod search;

use std::time::Duration;

use async_trait::async_trait;

pub use fetch::{FetchSettings, PrivateHost, PrivateHostError};
pub use images::ImageSettings;
pub use search::{SearchKind, SearchSettings};

use fetch::PageReader;
use images::ImageGenerator;
use search::Searcher;
use threadkeep_responses::{GeneratedImage, SearchResult, StatelessError, StatelessTools};
use threadkeep_service::tools::{WebFetch, WebSearch};

/// The tools of a deployment. A tool without settings is not available.
#[derive(Debug, Default)]
pub struct OnlineTools {
    search: Option<Searcher>,
    pages: Option<PageReader>,
    images: Option<ImageGenerator>,
}

impl OnlineTools {
    #[must_use]
    pub fn new(
        search: Option<SearchSettings>,
        fetch: Option<FetchSettings>,
        images: Option<ImageSettings>,
    ) -> Self {
        Self {
            search: search.map(Searcher::new),
            pages: fetch.map(PageReader::new),
            images: images.map(ImageGenerator::new),
        }
    }
}

#[async_trait]
impl StatelessTools for OnlineTools {
    async fn search(&self, search: &WebSearch) -> Result<Vec<SearchResult>, StatelessError> {
        let searcher = self.search.as_ref();
        searcher
            .ok_or(StatelessError::NOT_CONFIGURED)?
            .search(search)
            .await
    }

    async fn fetch(&self, fetch: &WebFetch) -> Result<String, StatelessError> {
        let pages = self.pages.as_ref();
        pages
            .ok_or(StatelessError::NOT_CONFIGURED)?
            .read(fetch)
            .await
    }

    async fn generate(
        &self,
        prompt: &str,
        time_limit: Duration,
    ) -> Result<GeneratedImage, StatelessError> {
        let images = self.images.as_ref();
        images
            .ok_or(StatelessError::NOT_CONFIGURED)?
            .generate(prompt, time_limit)
            .await
    }
}
