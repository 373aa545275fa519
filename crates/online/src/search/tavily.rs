//! [Tavily](https://docs.tavily.com/documentation/api-reference/endpoint/search).

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::json;

use threadkeep_responses::SearchResult;
use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::{UpstreamKey, UpstreamUrl};

#[derive(Deserialize)]
struct Answer {
    results: Vec<Page>,
}

#[derive(Deserialize)]
struct Page {
    title: String,
    url: String,
    #[serde(default)]
    content: String,
}

pub(super) fn request(
    client: &Client,
    url: &UpstreamUrl,
    key: Option<&UpstreamKey>,
    search: &WebSearch,
) -> RequestBuilder {
    let domains: Vec<_> = search.site.iter().collect();
    let body = json!({
        "query": search.query,
        "max_results": search.max_results,
        "include_domains": domains,
    });
    let request = client
        .post(url.join(&["search"]))
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    match key {
        Some(key) => request.header(AUTHORIZATION, key.bearer()),
        None => request,
    }
}

pub(super) fn read(body: &[u8]) -> Option<Vec<SearchResult>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let results = answer.results.into_iter().map(|page| SearchResult {
        title: page.title,
        url: page.url,
        snippet: page.content,
    });
    Some(results.collect())
}
