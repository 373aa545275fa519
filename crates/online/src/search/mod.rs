mod answer;
mod brave;
mod searxng;
mod tavily;

use std::fmt;
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use tokio::time::timeout;

use super::body::{BodyError, read_body};
use threadkeep_egress::{AGENT, http_client};
use threadkeep_responses::{SearchResult, StatelessError};
use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::{UpstreamKey, UpstreamUrl};

/// Time limit for a search, from name resolution to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 1_048_576;
/// Maximum lengths of a title and a snippet in characters. Longer strings are truncated.
const TITLE_CHARS_MAX: usize = 300;
const SNIPPET_CHARS_MAX: usize = 2_000;
/// Maximum size of a URL in bytes. Results with longer URLs are dropped, because `web_fetch` does not accept them.
const URL_BYTES_MAX: usize = 2_048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    Brave,
    Searxng,
    Tavily,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    pub kind: SearchKind,
    /// Base URL of the API. Its address may be private, because the operator sets it.
    pub url: UpstreamUrl,
    pub key: Option<UpstreamKey>,
}

pub(super) struct Searcher {
    client: Client,
    settings: SearchSettings,
    timeout: Duration,
}

impl SearchKind {
    pub const ALL: [Self; 3] = [Self::Brave, Self::Searxng, Self::Tavily];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Searxng => "searxng",
            Self::Tavily => "tavily",
        }
    }

    /// Returns whether the server requires a key. Servers that do not require a key do not accept one.
    #[must_use]
    pub fn has_key(self) -> bool {
        match self {
            Self::Brave | Self::Tavily => true,
            Self::Searxng => false,
        }
    }
}

impl Searcher {
    pub(super) fn new(settings: SearchSettings) -> Self {
        let client = http_client("searches cannot be made by https", |builder| {
            builder.user_agent(AGENT)
        });
        Self {
            client,
            settings,
            timeout: TIMEOUT,
        }
    }

    pub(super) async fn search(
        &self,
        search: &WebSearch,
    ) -> Result<Vec<SearchResult>, StatelessError> {
        let results = timeout(self.timeout, self.send(search)).await;
        let results = results.unwrap_or(Err(SearchError::Unreachable));
        let results = results.map_err(|error| {
            let kind = self.settings.kind.as_str();
            tracing::warn!(kind, %error, "web search failed");
            StatelessError::from(error)
        })?;
        let usable = results.into_iter().filter_map(usable);
        Ok(usable.take(search.max_results).collect())
    }

    async fn send(&self, search: &WebSearch) -> Result<Vec<SearchResult>, SearchError> {
        let response = self.request(search).send().await;
        let response = response.map_err(|error| match error.is_connect() {
            true => SearchError::Unreachable,
            false => SearchError::Broken,
        })?;
        let status = response.status();
        if !status.is_success() {
            return Err(SearchError::Status(status.as_u16()));
        }
        let body = read_body(response, ANSWER_BYTES_MAX).await?;
        let read = match self.settings.kind {
            SearchKind::Brave => brave::read(&body),
            // SearXNG returns null content for some engines
            SearchKind::Searxng => answer::read::<Option<String>>(&body),
            SearchKind::Tavily => answer::read::<String>(&body),
        };
        read.ok_or(SearchError::Unreadable)
    }

    fn request(&self, search: &WebSearch) -> RequestBuilder {
        let SearchSettings { kind, url, key } = &self.settings;
        match kind {
            SearchKind::Brave => brave::request(&self.client, url, key.as_ref(), search),
            SearchKind::Searxng => searxng::request(&self.client, url, search),
            SearchKind::Tavily => tavily::request(&self.client, url, key.as_ref(), search),
        }
    }
}

/// Appends the `site:` operator, which most engines support.
fn query_with_site(search: &WebSearch) -> String {
    match &search.site {
        Some(site) => format!("{} site:{site}", search.query),
        None => search.query.clone(),
    }
}

/// Truncates the title and the snippet of a result. Returns `None` if its URL is missing or too long.
fn usable(result: SearchResult) -> Option<SearchResult> {
    let SearchResult {
        title,
        url,
        snippet,
    } = result;
    let is_usable = !url.is_empty() && url.len() <= URL_BYTES_MAX;
    is_usable.then(|| SearchResult {
        title: truncated(title, TITLE_CHARS_MAX),
        url,
        snippet: truncated(snippet, SNIPPET_CHARS_MAX),
    })
}

fn truncated(mut text: String, max_chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max_chars) {
        text.truncate(end);
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum SearchError {
    #[error("the search server is unreachable")]
    Unreachable,
    #[error("the search server answered {0}")]
    Status(u16),
    #[error("the answer of the search server was cut off")]
    Broken,
    #[error("the answer of the search server is too long")]
    TooLong,
    #[error("the answer of the search server is unreadable")]
    Unreadable,
}

impl From<BodyError> for SearchError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLong => Self::TooLong,
            BodyError::Encoding => Self::Unreadable,
            BodyError::Broken => Self::Broken,
        }
    }
}

impl From<SearchError> for StatelessError {
    fn from(error: SearchError) -> Self {
        let text = error.to_string().into();
        match error {
            SearchError::Unreachable => Self::Unavailable(text),
            _ => Self::Failed(text),
        }
    }
}

impl fmt::Debug for Searcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searcher")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
