//! Client for [Brave Search](https://api-dashboard.search.brave.com/api-reference/web/search/get).

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;

use super::query_with_site;
use crate::fetch::text_of_html;
use threadkeep_responses::SearchResult;
use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::{UpstreamKey, UpstreamUrl};

#[derive(Deserialize)]
struct Answer {
    /// Missing if nothing was found.
    #[serde(default)]
    web: Web,
}

#[derive(Default, Deserialize)]
struct Web {
    #[serde(default)]
    results: Vec<Page>,
}

#[derive(Deserialize)]
struct Page {
    title: String,
    url: String,
    #[serde(default)]
    description: String,
}

pub(super) fn request(
    client: &Client,
    url: &UpstreamUrl,
    key: Option<&UpstreamKey>,
    search: &WebSearch,
) -> RequestBuilder {
    let mut url = url.join(&["res", "v1", "web", "search"]);
    url.query_pairs_mut()
        .append_pair("q", &query_with_site(search))
        .append_pair("count", &search.max_results.to_string());
    let request = client.get(url).header(ACCEPT, "application/json");
    match key {
        Some(key) => request.header("X-Subscription-Token", key.plain()),
        None => request,
    }
}

/// Reads the results in an answer. Titles and descriptions are HTML, in which tags highlight the matching words.
pub(super) fn read(body: &[u8]) -> Option<Vec<SearchResult>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let results = answer.web.results.into_iter().map(|page| SearchResult {
        title: text_of_html(&page.title),
        url: page.url,
        snippet: text_of_html(&page.description),
    });
    Some(results.collect())
}
