//! Client for [Tavily](https://docs.tavily.com/documentation/api-reference/endpoint/search).

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use serde_json::json;

use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::{UpstreamKey, UpstreamUrl};

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
