use serde::Deserialize;
use serde::de::DeserializeOwned;

use threadkeep_responses::SearchResult;

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de> + Default"))]
struct Answer<C> {
    results: Vec<Page<C>>,
}

#[derive(Deserialize)]
struct Page<C> {
    title: String,
    url: String,
    #[serde(default)]
    content: C,
}

/// Reads results of the form `{"title", "url", "content"}`. `C` is the type of the content: `Option<String>` if it may
/// be null, otherwise `String`.
pub(super) fn read<C>(body: &[u8]) -> Option<Vec<SearchResult>>
where
    C: DeserializeOwned + Default + Into<Option<String>>,
{
    let answer: Answer<C> = serde_json::from_slice(body).ok()?;
    let results = answer.results.into_iter().map(|page| SearchResult {
        title: page.title,
        url: page.url,
        snippet: page.content.into().unwrap_or_default(),
    });
    Some(results.collect())
}
