use std::net::IpAddr;

use actix_web::HttpRequest;

use super::Identity;
use threadkeep_domain::Fingerprint;

impl Identity {
    /// Returns a keyed digest of the client's IPv4 address or IPv6 network. An IPv6 network is a /64,
    /// the smallest network that Internet providers assign (RFC 6177). Trusts forwarding headers only from trusted
    /// proxies. Returns `None` if the peer address is unknown.
    #[must_use]
    pub fn client_network(&self, request: &HttpRequest) -> Option<Fingerprint> {
        let client = self.proxies.client(request)?;
        let digest = |network: &[u8]| self.ring.digest("threadkeep client network", &[network]);
        Some(Fingerprint(match client.to_canonical() {
            IpAddr::V4(address) => digest(&address.octets()),
            IpAddr::V6(address) => digest(&address.octets()[..8]),
        }))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::{CookieSettings, TrustedProxies};
    use threadkeep_domain::{KeyRing, SigningKey};

    fn network(identity: &Identity, peer: &str, forwarded_for: &str) -> Fingerprint {
        let request = TestRequest::default()
            .peer_addr(format!("{peer}:1").parse().unwrap())
            .insert_header(("x-forwarded-for", forwarded_for))
            .to_http_request();
        identity.client_network(&request).unwrap()
    }

    fn identity(secret: &[u8]) -> Identity {
        let ring = KeyRing::new(vec![SigningKey::new("main", secret)]).unwrap();
        let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
        Identity::new(ring, CookieSettings::default()).trust(proxies)
    }

    #[test]
    fn a_network_is_an_ipv4_address_or_an_ipv6_64_behind_trusted_proxies_only() {
        let identity = identity(b"a secret for tests of networks");
        let of = |peer, list| network(&identity, peer, list);

        assert_eq!(
            of("[2001:db8:1:2::1]", ""),
            of("[2001:db8:1:2:ffff::9]", "")
        );
        assert_ne!(of("[2001:db8:1:2::1]", ""), of("[2001:db8:1:3::1]", ""));
        assert_eq!(of("192.0.2.1", ""), of("[::ffff:192.0.2.1]", ""));
        assert_ne!(of("192.0.2.1", ""), of("192.0.2.2", ""));
        assert_eq!(of("10.0.0.1", "192.0.2.1"), of("192.0.2.1", ""));
        assert_eq!(of("192.0.2.1", "192.0.2.2"), of("192.0.2.1", ""));
    }

    #[test]
    fn the_digest_of_a_network_depends_on_the_key() {
        let [one, other] = [b"a secret for tests", b"another one, of it"].map(|s| identity(s));

        assert_ne!(
            network(&one, "192.0.2.1", ""),
            network(&other, "192.0.2.1", "")
        );
    }
}
