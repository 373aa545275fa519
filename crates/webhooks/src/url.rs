use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use threadkeep_egress::{address_of, is_public};

const URL_BYTES_MAX: usize = 2_048;

/// The URL of an endpoint: http or https, with a host and without credentials. `Debug` output omits the path, because
/// some receivers use it as a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    text: Box<str>,
    url: Url,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointUrlError {
    /// The string is too long, or is not a URL with a host.
    #[error("it must be an absolute URL of at most 2,048 bytes")]
    Malformed,
    #[error("its scheme must be http or https")]
    Scheme,
    #[error("it has a user or password; verify the signature of deliveries instead")]
    Credentials,
    /// The host is a private or reserved address.
    #[error("its host is a private or reserved address")]
    Private,
}

impl EndpointUrl {
    /// Returns the text as it was parsed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the host is a private or reserved address. Returns false for host names, which are checked when
    /// they are resolved.
    #[must_use]
    pub fn is_private(&self) -> bool {
        address_of(&self.url).is_some_and(|address| !is_public(address))
    }

    /// Returns the host and the effective port.
    pub(super) fn host(&self) -> (&str, Option<u16>) {
        let host = self.url.host_str().unwrap_or_default();
        (host, self.url.port_or_known_default())
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }
}

impl FromStr for EndpointUrl {
    type Err = EndpointUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // the parser would silently remove white space and control characters
        let is_stripped = |char: char| char.is_whitespace() || char.is_control();
        if text.len() > URL_BYTES_MAX || text.contains(is_stripped) {
            return Err(EndpointUrlError::Malformed);
        }
        // checks for a host before parsing, because the parser would use the path of `http:///path` as the host
        let (_, rest) = text.split_once(':').ok_or(EndpointUrlError::Malformed)?;
        let has_host = |rest: &str| !rest.starts_with(['/', '\\']);
        let names_a_host = rest.strip_prefix("//").is_some_and(has_host);
        let url = Url::parse(text).map_err(|_| EndpointUrlError::Malformed)?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(EndpointUrlError::Scheme);
        }
        if !url.has_host() || !names_a_host {
            return Err(EndpointUrlError::Malformed);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointUrlError::Credentials);
        }
        Ok(Self {
            text: text.into(),
            url,
        })
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/***", self.url.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_omits_the_path() {
        let url: EndpointUrl = "https://a.example:8443/services/T0/x?y#z".parse().unwrap();

        assert_eq!(format!("{url:?}"), "https://a.example:8443/***");
    }

    #[test]
    fn a_url_keeps_its_original_text() {
        for text in ["http://a.example", "HTTPS://A.example:8443/b?c=d"] {
            assert_eq!(text.parse::<EndpointUrl>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn invalid_endpoint_urls_are_rejected() {
        let long = format!("http://a/{}", "b".repeat(2_048));
        for (text, error) in [
            ("", EndpointUrlError::Malformed),
            ("a.example", EndpointUrlError::Malformed),
            ("http://", EndpointUrlError::Malformed),
            ("http:///a.example", EndpointUrlError::Malformed),
            ("http:/a.example", EndpointUrlError::Malformed),
            ("http:a.example", EndpointUrlError::Malformed),
            ("http:\\\\a.example", EndpointUrlError::Malformed),
            ("https://\\a.example", EndpointUrlError::Malformed),
            (" http://a.example", EndpointUrlError::Malformed),
            ("http://a.example/\nb", EndpointUrlError::Malformed),
            (long.as_str(), EndpointUrlError::Malformed),
            ("ftp://a.example", EndpointUrlError::Scheme),
            ("file:///etc/passwd", EndpointUrlError::Scheme),
            ("javascript:alert(1)", EndpointUrlError::Scheme),
            ("http://user@a.example", EndpointUrlError::Credentials),
            ("http://:pass@a.example", EndpointUrlError::Credentials),
        ] {
            assert_eq!(text.parse::<EndpointUrl>().unwrap_err(), error, "{text}");
        }
    }
}
