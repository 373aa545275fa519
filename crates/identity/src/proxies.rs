use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use ipnet::IpNet;

static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Addresses and ranges of trusted proxies. Empty by default.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

/// The text is neither an address nor a CIDR range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a CIDR range")]
pub struct ProxyError(String);

impl TrustedProxies {
    /// Parses addresses and CIDR ranges.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ProxyError> {
        let parse = |text: &str| {
            text.parse::<IpNet>()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
                .map_err(|_| ProxyError(text.into()))
        };
        texts
            .into_iter()
            .map(parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns whether the request came directly from a trusted proxy.
    #[must_use]
    pub fn has_sent(&self, request: &HttpRequest) -> bool {
        !self.0.is_empty()
            && request
                .peer_addr()
                .is_some_and(|peer| self.contains(peer.ip()))
    }

    /// Returns whether the client used https, as reported by the nearest proxy.
    #[must_use]
    pub fn is_https(&self, request: &HttpRequest) -> bool {
        let scheme = self.scheme(request);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"))
    }

    pub(super) fn scheme<'a>(&self, request: &'a HttpRequest) -> Option<&'a [u8]> {
        let mut entries = entries_from_last(request, &FORWARDED_PROTO);
        self.has_sent(request).then(|| entries.next())?
    }

    pub(super) fn host<'a>(&self, request: &'a HttpRequest) -> Option<&'a [u8]> {
        let mut entries = entries_from_last(request, &FORWARDED_HOST);
        self.has_sent(request).then(|| entries.next())?
    }

    /// Returns the client's address. Behind trusted proxies, returns the last forwarded address that does not belong to
    /// a proxy. Ignores entries that precede a malformed entry, because the client may have forged them.
    #[must_use]
    pub fn client(&self, request: &HttpRequest) -> Option<IpAddr> {
        let mut client = request.peer_addr()?.ip();
        if !self.contains(client) {
            return Some(client);
        }
        for entry in entries_from_last(request, &FORWARDED_FOR) {
            let Some(address) = forwarded(entry) else {
                break;
            };
            client = address;
            if !self.contains(client) {
                break;
            }
        }
        Some(client)
    }

    /// Compares canonical addresses, because a dual-stack socket reports IPv4 addresses as IPv6.
    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// Returns the entries in reverse order, beginning with the entry of the nearest proxy. Yields bytes, so that entries
/// with invalid text keep their position.
fn entries_from_last<'a>(
    request: &'a HttpRequest,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> {
    let lines: Vec<_> = request.headers().get_all(name).collect();
    let lines = lines.into_iter().rev();
    let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    entries.map(<[u8]>::trim_ascii)
}

/// Parses an address. Some proxies add a port.
fn forwarded(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?;
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;
    use proptest::prelude::*;

    use super::*;

    fn request(peer: &str, proto: &str, forwarded_for: &str) -> HttpRequest {
        TestRequest::default()
            .peer_addr(format!("{peer}:1").parse().unwrap())
            .insert_header(("x-forwarded-proto", proto))
            .insert_header(("x-forwarded-for", forwarded_for))
            .to_http_request()
    }

    #[test]
    fn only_trusted_proxies_report_the_scheme() {
        let proxies = TrustedProxies::parse(["10.0.0.0/8", "192.0.2.1"]).unwrap();

        assert!(proxies.is_https(&request("10.1.2.3", "https", "")));
        assert!(proxies.is_https(&request("192.0.2.1", "http, https", "")));
        assert!(!proxies.is_https(&request("10.1.2.3", "https, http", "")));
        assert!(!proxies.is_https(&request("192.0.2.2", "https", "")));
        assert!(!TrustedProxies::default().is_https(&request("10.1.2.3", "https", "")));
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_proxy() {
        let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
        let client = |peer: &str, list: &str| {
            proxies
                .client(&request(peer, "http", list))
                .unwrap()
                .to_string()
        };

        assert_eq!(client("203.0.113.9", "198.51.100.1"), "203.0.113.9");
        assert_eq!(
            client("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2"),
            "198.51.100.1"
        );
        assert_eq!(client("10.0.0.1", "198.51.100.1:5678"), "198.51.100.1");
        assert_eq!(client("10.0.0.1", "[2001:db8::1]:5678"), "2001:db8::1");
        assert_eq!(client("10.0.0.1", "not an address"), "10.0.0.1");
    }

    #[test]
    fn a_non_utf8_entry_ends_the_search() {
        let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
        let lines = |name: &'static str, lines: &[&[u8]]| {
            let mut request = TestRequest::default().peer_addr("10.0.0.1:1".parse().unwrap());
            for line in lines {
                request = request.append_header((name, HeaderValue::from_bytes(line).unwrap()));
            }
            request.to_http_request()
        };
        let client = |of: &[&[u8]]| {
            let client = proxies.client(&lines("x-forwarded-for", of)).unwrap();
            client.to_string()
        };
        let is_https = |of: &[&[u8]]| proxies.is_https(&lines("x-forwarded-proto", of));

        assert_eq!(client(&[b"1.1.1.1", b"\xff"]), "10.0.0.1");
        assert_eq!(client(&[b"1.1.1.1, \xff, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&[b"1.1.1.1, \xff", b"10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&[b"\xff, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(client(&[b"\xff", b"198.51.100.1"]), "198.51.100.1");
        assert!(is_https(&[b"\xff, https"]));
        assert!(!is_https(&[b"https", b"\xff"]));
        assert!(!is_https(&[b"https, \xff"]));
    }

    proptest! {
        #[test]
        fn forged_headers_do_not_override_the_nearest_proxy(
            forged in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
        ) {
            let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
            let mut request = TestRequest::default().peer_addr("10.0.0.1:1".parse().unwrap());
            for line in forged {
                if let Ok(line) = HeaderValue::from_bytes(&line) {
                    request = request
                        .append_header(("x-forwarded-for", line.clone()))
                        .append_header(("x-forwarded-proto", line));
                }
            }
            let request = request
                .append_header(("x-forwarded-for", "198.51.100.1"))
                .append_header(("x-forwarded-proto", "http"))
                .to_http_request();

            prop_assert_eq!(proxies.client(&request), Some("198.51.100.1".parse().unwrap()));
            prop_assert!(!proxies.is_https(&request));
        }
    }

    #[test]
    fn an_invalid_range_is_named_in_the_error() {
        assert!(
            TrustedProxies::parse(["10.0.0.0/8", "proxy.example"])
                .unwrap_err()
                .to_string()
                .contains("proxy.example")
        );
    }
}
