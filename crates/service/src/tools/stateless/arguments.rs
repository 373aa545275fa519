use super::tool::StatelessTool;
use crate::tools::arguments::{Fields, read_object};
use crate::tools::mistake::Mistake;
use threadkeep_domain::Json;

/// Maximum number of characters in a query. Brave and Tavily have the same limit.
pub(super) const QUERY_CHARS_MAX: usize = 400;
pub(super) const RESULTS: u64 = 5;
pub(super) const RESULTS_MAX: u64 = 20;
/// Maximum size of a URL in bytes. Webhook URLs have the same limit.
pub(super) const URL_BYTES_MAX: usize = 2_048;
pub(super) const FETCHED_CHARS: u64 = 20_000;
pub(super) const FETCHED_CHARS_MAX: u64 = 100_000;
/// Maximum number of characters in a prompt. OpenAI's image models have the same limit.
pub(super) const PROMPT_CHARS_MAX: usize = 32_000;
/// Maximum length of a DNS name in bytes (RFC 1035, section 2.3.4).
const DOMAIN_BYTES_MAX: usize = 253;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatelessCall {
    Search(WebSearch),
    Fetch(WebFetch),
    Image {
        /// 1 to 32,000 characters.
        prompt: String,
    },
}

/// A web search. `Debug` output omits the query.
#[derive(Clone, PartialEq, Eq)]
pub struct WebSearch {
    /// 1 to 400 characters.
    pub query: String,
    /// 1 to 20.
    pub max_results: usize,
    /// Restricts the search to this domain. May contain only letters, digits, dots and hyphens.
    pub site: Option<String>,
}

/// A page to fetch. `Debug` output omits the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct WebFetch {
    /// As the model wrote it; up to 2,048 bytes.
    pub url: String,
    /// Maximum number of characters to return, 1 to 100,000. Longer text is truncated.
    pub max_chars: usize,
}

impl StatelessCall {
    pub fn read(tool: StatelessTool, arguments: &str) -> Result<Self, String> {
        let name = tool.dotted();
        let read = |object: &Json| match tool {
            StatelessTool::WebSearch => read_search(name, object),
            StatelessTool::WebFetch => read_fetch(name, object),
            StatelessTool::ImageGeneration => read_image(name, object),
        };
        let call = read_object(name, arguments).and_then(|object| read(&object));
        call.map_err(|Mistake(text)| text)
    }
}

fn read_search(tool: &'static str, object: &Json) -> Result<StatelessCall, Mistake> {
    let fields = Fields::of(tool, object, ["query", "num_results", "site"])?;
    let query = fields.required_text(0)?;
    if query.trim().is_empty() || query.chars().count() > QUERY_CHARS_MAX {
        return Err(fields.wrong(0, &format!("1 to {QUERY_CHARS_MAX} characters")));
    }
    let site = fields.text(2)?;
    if site.as_deref().is_some_and(|site| !is_domain(site)) {
        return Err(fields.wrong(2, "a domain, such as example.com"));
    }
    Ok(StatelessCall::Search(WebSearch {
        query,
        max_results: fields.between(1, 1..=RESULTS_MAX)?.unwrap_or(RESULTS) as usize,
        site,
    }))
}

fn read_fetch(tool: &'static str, object: &Json) -> Result<StatelessCall, Mistake> {
    let fields = Fields::of(tool, object, ["url", "max_length"])?;
    let url = fields.required_text(0)?;
    if url.len() > URL_BYTES_MAX {
        return Err(fields.wrong(0, &format!("at most {URL_BYTES_MAX} bytes")));
    }
    let max_chars = fields.between(1, 1..=FETCHED_CHARS_MAX)?;
    Ok(StatelessCall::Fetch(WebFetch {
        url,
        max_chars: max_chars.unwrap_or(FETCHED_CHARS) as usize,
    }))
}

fn read_image(tool: &'static str, object: &Json) -> Result<StatelessCall, Mistake> {
    let fields = Fields::of(tool, object, ["prompt"])?;
    let prompt = fields.required_text(0)?;
    if prompt.trim().is_empty() || prompt.chars().count() > PROMPT_CHARS_MAX {
        return Err(fields.wrong(0, &format!("1 to {PROMPT_CHARS_MAX} characters")));
    }
    Ok(StatelessCall::Image { prompt })
}

/// Returns whether `text` is a valid domain. Without this check, a model could add search operators to the query.
fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_plain)
    };
    text.len() <= DOMAIN_BYTES_MAX && text.split('.').all(is_label)
}

impl std::fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSearch").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WebFetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebFetch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatelessTool::{ImageGeneration, WebFetch as Fetch, WebSearch as Search};

    fn read(tool: StatelessTool, arguments: &str) -> Result<StatelessCall, String> {
        StatelessCall::read(tool, arguments)
    }

    #[test]
    fn arguments_have_defaults() {
        let search = WebSearch {
            query: "a b".into(),
            max_results: 5,
            site: None,
        };
        let fetch = WebFetch {
            url: "https://a.example".into(),
            max_chars: 20_000,
        };

        assert_eq!(
            read(Search, r#"{"query":"a b"}"#),
            Ok(StatelessCall::Search(search.clone()))
        );
        assert_eq!(
            read(
                Search,
                r#"{"query":"a b","num_results":20,"site":"docs.a-b.example"}"#
            ),
            Ok(StatelessCall::Search(WebSearch {
                max_results: 20,
                site: Some("docs.a-b.example".into()),
                ..search
            }))
        );
        assert_eq!(
            read(Fetch, r#"{"url":"https://a.example"}"#),
            Ok(StatelessCall::Fetch(fetch.clone()))
        );
        assert_eq!(
            read(Fetch, r#"{"url":"https://a.example","max_length":1e5}"#),
            Ok(StatelessCall::Fetch(WebFetch {
                max_chars: 100_000,
                ..fetch
            }))
        );
        let prompt = "x".repeat(32_000);
        assert_eq!(
            read(ImageGeneration, &format!(r#"{{"prompt":"{prompt}"}}"#)),
            Ok(StatelessCall::Image { prompt })
        );
    }

    #[test]
    fn mistakes_name_the_wrong_argument() {
        let long_query = format!(r#"{{"query":"{}"}}"#, "ä".repeat(401));
        let long_url = format!(r#"{{"url":"{}"}}"#, "a".repeat(2_049));
        for (tool, arguments, text) in [
            (Search, "{}", "web.search query is required"),
            (
                Search,
                r#"{"query":" "}"#,
                "web.search query must be 1 to 400 characters",
            ),
            (
                Search,
                &*long_query,
                "web.search query must be 1 to 400 characters",
            ),
            (
                Search,
                r#"{"query":"a","num_results":21}"#,
                "web.search num_results must be an integer from 1 to 20",
            ),
            (
                Search,
                r#"{"query":"a","site":"a.example inurl:b"}"#,
                "web.search site must be a domain, such as example.com",
            ),
            (
                Search,
                r#"{"query":"a","count":1}"#,
                "web.search does not take count; the fields are query, num_results, site",
            ),
            (Fetch, "{", "web.fetch arguments are not JSON"),
            (Fetch, r#"{"url":7}"#, "web.fetch url must be a string"),
            (
                Fetch,
                &*long_url,
                "web.fetch url must be at most 2048 bytes",
            ),
            (
                Fetch,
                r#"{"url":"a","max_length":0}"#,
                "web.fetch max_length must be an integer from 1 to 100000",
            ),
            (
                ImageGeneration,
                r#"{"prompt":""}"#,
                "image.generation prompt must be 1 to 32000 characters",
            ),
        ] {
            let mistake = read(tool, arguments).unwrap_err();
            assert!(mistake.starts_with(text), "{mistake}");
        }
    }

    #[test]
    fn debug_output_omits_arguments() {
        let call = read(Search, r#"{"query":"secret"}"#).unwrap();
        let debug = format!("{call:?} {:?}", read(Fetch, r#"{"url":"secret"}"#).unwrap());

        assert!(!debug.contains("secret"), "{debug}");
    }
}
