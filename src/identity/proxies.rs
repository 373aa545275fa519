//! Proxies whose word on a request counts.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use ipnet::IpNet;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Addresses and ranges of proxies; by default there is none.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

/// A text that is neither an address nor a CIDR range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a CIDR range")]
pub struct ProxyError(String);

impl TrustedProxies {
    /// Reads addresses and CIDR ranges.
    ///
    /// # Errors
    /// [`ProxyError`] names the first that is neither.
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

    /// Whether the request came straight from a trusted proxy.
    #[must_use]
    pub fn has_sent(&self, request: &HttpRequest) -> bool {
        !self.0.is_empty()
            && request
                .peer_addr()
                .is_some_and(|peer| self.contains(peer.ip()))
    }

    /// Whether the client spoke https, as the proxy before us says.
    #[must_use]
    pub fn is_https(&self, request: &HttpRequest) -> bool {
        self.has_sent(request)
            && last_word(request, &FORWARDED_PROTO)
                .is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
    }

    /// The client's address: behind trusted proxies, the last one that is not theirs.
    #[must_use]
    pub fn client(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?.ip();
        if !self.contains(peer) {
            return Some(peer);
        }
        let mut client = peer;
        let values: Vec<_> = request.headers().get_all(FORWARDED_FOR).collect();
        let addresses = values
            .iter()
            .rev()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.rsplit(','));
        for address in addresses {
            let Some(address) = forwarded(address.trim()) else {
                break;
            };
            client = address;
            if !self.contains(client) {
                break;
            }
        }
        Some(client)
    }

    /// IPv4 addresses that a dual-stack socket shows as IPv6 count as what they are.
    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// The last value of a list header: the one that the nearest proxy has added.
fn last_word<'a>(request: &'a HttpRequest, name: &HeaderName) -> Option<&'a str> {
    let value = request.headers().get_all(name).last()?.to_str().ok()?;
    value.rsplit(',').next().map(str::trim)
}

/// An address, which some proxies tell with its port.
fn forwarded(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn request(peer: &str, proto: &str, forwarded_for: &str) -> HttpRequest {
        TestRequest::default()
            .peer_addr(format!("{peer}:1").parse().unwrap())
            .insert_header(("x-forwarded-proto", proto))
            .insert_header(("x-forwarded-for", forwarded_for))
            .to_http_request()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let proxies = TrustedProxies::parse(["10.0.0.0/8", "192.0.2.1"]).unwrap();

        assert!(proxies.is_https(&request("10.1.2.3", "https", "")));
        assert!(proxies.is_https(&request("192.0.2.1", "http, https", "")));
        assert!(!proxies.is_https(&request("10.1.2.3", "https, http", "")));
        assert!(!proxies.is_https(&request("192.0.2.2", "https", "")));
        assert!(!TrustedProxies::default().is_https(&request("10.1.2.3", "https", "")));
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
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
    fn a_wrong_range_is_named() {
        assert!(
            TrustedProxies::parse(["10.0.0.0/8", "proxy.example"])
                .unwrap_err()
                .to_string()
                .contains("proxy.example")
        );
    }
}
