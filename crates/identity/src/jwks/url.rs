use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

const URL_BYTES_MAX: usize = 2_048;

/// The URL of a JWK Set. Must use https, or http to a loopback address, so that nobody on the network can replace keys.
#[derive(Clone, PartialEq, Eq)]
pub struct JwksUrl(Url);

/// The error for text that is not a valid JWK Set URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has to be a URL of at most 2,048 bytes without user and password: https, or http to a loopback \
     address"
)]
pub struct JwksUrlError;

impl JwksUrl {
    pub(super) fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for JwksUrl {
    type Err = JwksUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // the parser would silently drop whitespace and control characters
        let is_stripped = |char: char| char.is_whitespace() || char.is_control();
        if text.len() > URL_BYTES_MAX || text.contains(is_stripped) {
            return Err(JwksUrlError);
        }
        let url = Url::parse(text).map_err(|_| JwksUrlError)?;
        let host = url.host_str().ok_or(JwksUrlError)?;
        let is_safe = match url.scheme() {
            "https" => true,
            "http" => is_loopback(host),
            _ => false,
        };
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        match is_safe && !has_credentials {
            true => Ok(Self(url)),
            false => Err(JwksUrlError),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = inner.unwrap_or(host).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Omits path and query, which may contain a secret.
impl fmt::Debug for JwksUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/***", self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_loopback_urls_are_accepted() {
        for accepted in [
            "https://issuer.example/.well-known/jwks.json?a=b",
            "https://10.0.0.1/jwks",
            "http://127.0.0.1:8000/jwks",
            "http://[::1]/jwks",
            "http://localhost/jwks",
        ] {
            assert!(accepted.parse::<JwksUrl>().is_ok(), "{accepted}");
        }
        for rejected in [
            "",
            "issuer.example/jwks",
            "http://issuer.example/jwks",
            "http://localhost.example/jwks",
            "http://10.0.0.1/jwks",
            "https://user:secret@issuer.example/jwks",
            "https://",
            "https://issuer.example/ jwks",
            "file:///etc/passwd",
        ] {
            assert_eq!(rejected.parse::<JwksUrl>(), Err(JwksUrlError), "{rejected}");
        }
    }
}
