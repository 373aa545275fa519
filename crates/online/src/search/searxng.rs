//! [`SearXNG`](https://docs.searxng.org/dev/search_api). A server whose settings do not list the format `json` answers 403.

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;

use super::query_with_site;
use threadkeep_responses::SearchResult;
use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::UpstreamUrl;

#[derive(Deserialize)]
struct Answer {
    results: Vec<Page>,
}

#[derive(Deserialize)]
struct Page {
    title: String,
    url: String,
    /// Null for some engines.
    #[serde(default)]
    content: Option<String>,
}

pub(super) fn request(client: &Client, url: &UpstreamUrl, search: &WebSearch) -> RequestBuilder {
    let mut url = url.join(&["search"]);
    url.query_pairs_mut()
        .append_pair("q", &query_with_site(search))
        .append_pair("format", "json");
    client.get(url).header(ACCEPT, "application/json")
}

pub(super) fn read(body: &[u8]) -> Option<Vec<SearchResult>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let results = answer.results.into_iter().map(|page| SearchResult {
        title: page.title,
        url: page.url,
        snippet: page.content.unwrap_or_default(),
    });
    Some(results.collect())
}
