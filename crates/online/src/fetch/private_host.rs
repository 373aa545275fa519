use std::str::FromStr;

use reqwest::Url;

/// A `host:port` that models may reach even though its address is private. The host is normalized as in URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    host: Box<str>,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be `host:port`")]
pub struct PrivateHostError;

impl PrivateHost {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    pub(super) fn matches_url(&self, url: &Url) -> bool {
        url.host_str() == Some(&*self.host) && url.port_or_known_default() == Some(self.port)
    }
}

impl FromStr for PrivateHost {
    type Err = PrivateHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or(PrivateHostError)?;
        let is_host = |char: char| char.is_ascii_alphanumeric() || ".-_[]:".contains(char);
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        if !is_port || !host.chars().all(is_host) {
            return Err(PrivateHostError);
        }
        // parses a URL, because the URL parser normalizes the host
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| PrivateHostError)?;
        let host = url.host_str().ok_or(PrivateHostError)?;
        let port = port.parse().ok().filter(|port| *port > 0);
        Ok(Self::new(host, port.ok_or(PrivateHostError)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_compared_in_its_normalized_form() {
        let matches_url = |host: &str, url: &str| {
            host.parse::<PrivateHost>()
                .unwrap()
                .matches_url(&url.parse().unwrap())
        };

        assert!(matches_url("Wiki.internal:80", "http://wiki.INTERNAL/a"));
        assert!(matches_url("wiki.internal:443", "https://wiki.internal/"));
        assert!(matches_url("10.0.0.1:8080", "http://0xa.1:8080/"));
        assert!(matches_url("[::1]:80", "http://[0:0::1]/"));
        assert!(!matches_url("wiki.internal:80", "https://wiki.internal/"));
        assert!(!matches_url(
            "wiki.internal:80",
            "http://wiki.internal:8080/"
        ));
        assert!(!matches_url("wiki.internal:80", "http://a.wiki.internal/"));
    }

    #[test]
    fn only_a_host_with_a_port_is_accepted() {
        for text in [
            "",
            "a",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:x",
            "http://a:80",
            "u@a:80",
            "a/b:80",
            "a b:80",
            "::1:80",
            "*:80",
        ] {
            assert_eq!(text.parse::<PrivateHost>(), Err(PrivateHostError), "{text}");
        }
    }
}
