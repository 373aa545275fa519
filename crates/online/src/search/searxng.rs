//! Client for [`SearXNG`](https://docs.searxng.org/dev/search_api). `SearXNG` answers 403 unless the format `json` is
//! enabled in its settings.

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder};

use super::query_with_site;
use threadkeep_service::tools::WebSearch;
use threadkeep_upstreams::UpstreamUrl;

pub(super) fn request(client: &Client, url: &UpstreamUrl, search: &WebSearch) -> RequestBuilder {
    let mut url = url.join(&["search"]);
    url.query_pairs_mut()
        .append_pair("q", &query_with_site(search))
        .append_pair("format", "json");
    client.get(url).header(ACCEPT, "application/json")
}
