use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

const URL_MAX_BYTES: usize = 2_048;

#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Name of the upstream in the settings and in logs.
    pub name: String,
    /// Base URL of the API. For OpenAI's APIs, it ends in `/v1`.
    pub url: UpstreamUrl,
    /// If `None`, requests are sent without a credential.
    pub key: Option<UpstreamKey>,
    /// Time limit for one attempt, including the time to read the whole answer.
    pub timeout: Duration,
    /// Maximum number of retries after the first attempt.
    pub retries: u32,
    /// Maximum size of an answer. A larger answer is rejected, not truncated.
    pub max_answer_bytes: u64,
}

/// The URL of an upstream: http or https, without credentials, query or fragment.
///
/// Private addresses are allowed, because the operator sets the URL. The debug output does not contain the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl(Url);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamUrlError {
    #[error("it must be an absolute URL of at most 2,048 bytes")]
    Malformed,
    #[error("its scheme must be http or https")]
    Scheme,
    #[error("it has a user or password; set the key of the upstream instead")]
    Credentials,
    #[error("it has a query or fragment")]
    Query,
}

/// The credential for an upstream, which consists of visible ASCII. The debug output does not contain the credential.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamKey(Box<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key of an upstream is visible ASCII without spaces")]
pub struct UpstreamKeyError;

impl UpstreamUrl {
    pub fn join(&self, path: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    pub fn authority(&self) -> (&str, u16) {
        let port = self.0.port_or_known_default().unwrap_or_default();
        (self.host(), port)
    }

    pub(super) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl FromStr for UpstreamUrl {
    type Err = UpstreamUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > URL_MAX_BYTES {
            return Err(UpstreamUrlError::Malformed);
        }
        let url: Url = text.parse().map_err(|_| UpstreamUrlError::Malformed)?;
        if !["http", "https"].contains(&url.scheme()) {
            Err(UpstreamUrlError::Scheme)
        } else if url.host_str().is_none() {
            Err(UpstreamUrlError::Malformed)
        } else if !url.username().is_empty() || url.password().is_some() {
            Err(UpstreamUrlError::Credentials)
        } else if url.query().is_some() || url.fragment().is_some() {
            Err(UpstreamUrlError::Query)
        } else {
            Ok(Self(url))
        }
    }
}

impl fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamUrl(***)")
    }
}

impl UpstreamSettings {
    pub(super) fn headers(&self) -> HeaderMap {
        let key = self.key.iter();
        key.map(|key| (AUTHORIZATION, key.bearer())).collect()
    }
}

impl UpstreamKey {
    /// Returns an `Authorization` header value with the key as a bearer token (RFC 6750).
    pub fn bearer(&self) -> HeaderValue {
        sensitive(&format!("Bearer {}", self.0))
    }

    /// Returns the bare key, for other headers.
    pub fn plain(&self) -> HeaderValue {
        sensitive(&self.0)
    }
}

fn sensitive(text: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(text).expect("visible ASCII is a header's value");
    value.set_sensitive(true);
    value
}

impl FromStr for UpstreamKey {
    type Err = UpstreamKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UpstreamKeyError);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_absolute_and_has_neither_credentials_nor_a_query() {
        use UpstreamUrlError::{Credentials, Malformed, Query, Scheme};
        for (text, error) in [
            ("/v1", Malformed),
            ("http://", Malformed),
            ("ftp://a.example/v1", Scheme),
            ("file:///v1", Scheme),
            ("https://u@a.example/v1", Credentials),
            ("https://:p@a.example/v1", Credentials),
            ("https://a.example/v1?key=1", Query),
            ("https://a.example/v1#a", Query),
        ] {
            assert_eq!(text.parse::<UpstreamUrl>(), Err(error), "{text}");
        }
        assert!("http://10.0.0.1:8000/v1".parse::<UpstreamUrl>().is_ok());
    }

    #[test]
    fn joining_a_path_ignores_a_trailing_slash() {
        for (base, joined) in [
            ("http://a.example", "http://a.example/chat/completions"),
            (
                "http://a.example/v1",
                "http://a.example/v1/chat/completions",
            ),
            (
                "http://a.example/v1/",
                "http://a.example/v1/chat/completions",
            ),
        ] {
            let url: UpstreamUrl = base.parse().unwrap();
            assert_eq!(url.join(&["chat", "completions"]).as_str(), joined);
        }
    }

    #[test]
    fn a_key_fits_into_a_header() {
        for text in ["", "a b", "a\r\nb", "ä", "\u{7f}"] {
            assert_eq!(text.parse::<UpstreamKey>(), Err(UpstreamKeyError));
        }
        let key: UpstreamKey = "sk-1".parse().unwrap();
        assert_eq!(key.bearer(), "Bearer sk-1");
    }

    #[test]
    fn debug_forms_show_neither_the_address_nor_the_key() {
        let settings = UpstreamSettings {
            name: "main".into(),
            url: "http://host.internal/v1".parse().unwrap(),
            key: Some("sk-secret".parse().unwrap()),
            timeout: Duration::from_secs(1),
            retries: 2,
            max_answer_bytes: 1,
        };

        let debug = format!("{settings:?} {:?}", settings.key.as_ref().unwrap().bearer());

        assert!(
            !debug.contains("secret") && !debug.contains("internal"),
            "{debug}"
        );
    }
}
