use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use threadkeep_domain::scope::Scope;
use threadkeep_domain::{KeyRing, TAG_BYTES};

const PURPOSE: &str = "threadkeep url of a scope";

/// Characters that are reserved in queries, or that some parsers treat as reserved.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b':')
    .remove(b'_')
    .remove(b'~');

/// Grants access to one scope through a signed query (`scope=<scope>&expires=<seconds>&sig=<tag>`), for clients that
/// cannot set headers. Valid until the grant expires or its signing key is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeGrant {
    /// The scope that the grant gives access to.
    pub scope: Scope,
    /// Expiration time in Unix seconds. If `None`, the grant is valid for as long as its signing key is in the ring.
    pub expires: Option<u64>,
}

impl ScopeGrant {
    /// Formats the query, signed with the ring's signing key.
    #[must_use]
    pub fn to_query(&self, ring: &KeyRing) -> String {
        let scope = self.scope.to_string();
        let expires = self.expires.map(|seconds| seconds.to_string());
        let tag = ring.tag(PURPOSE, &parts(&scope, expires.as_deref()));
        let scope = utf8_percent_encode(&scope, &RESERVED);
        let expires = expires.map_or_else(String::new, |seconds| format!("&expires={seconds}"));
        format!("scope={scope}{expires}&sig={}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Verifies the decoded parameters of a query. Returns `None` if no key signed them or the grant has expired.
    #[must_use]
    pub fn open(
        ring: &KeyRing,
        scope: &str,
        expires: Option<&str>,
        signature: &str,
        now_ms: u64,
    ) -> Option<Self> {
        let tag: [u8; TAG_BYTES] = URL_SAFE_NO_PAD.decode(signature).ok()?.try_into().ok()?;
        if !ring.verify_tag(&tag, PURPOSE, &parts(scope, expires)) {
            return None;
        }
        let expires: Option<u64> = expires.map(str::parse).transpose().ok()?;
        if expires.is_some_and(|seconds| seconds <= now_ms / 1_000) {
            return None;
        }
        let scope = scope.parse().ok()?;
        Some(Self { scope, expires })
    }
}

/// Returns the parts of a query that the signature covers. An empty second part means that the grant never expires.
fn parts<'a>(scope: &'a str, expires: Option<&'a str>) -> [&'a [u8]; 2] {
    [scope.as_bytes(), expires.unwrap_or_default().as_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::SigningKey;

    fn ring(names: &[&str]) -> KeyRing {
        let key = |name: &&str| SigningKey::new(*name, name.as_bytes());
        KeyRing::new(names.iter().map(key).collect()).unwrap()
    }

    fn grant(expires: Option<u64>) -> ScopeGrant {
        let scope = "session:a b".replace(' ', "&").parse().unwrap();
        ScopeGrant { scope, expires }
    }

    fn open(ring: &KeyRing, query: &str, now_ms: u64) -> Option<ScopeGrant> {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut values = pairs.filter(|(key, _)| *key == name);
            let (_, value) = values.next()?;
            let value = percent_encoding::percent_decode_str(value).decode_utf8();
            Some(value.unwrap().into_owned())
        };
        let (scope, expires) = (value("scope")?, value("expires"));
        ScopeGrant::open(ring, &scope, expires.as_deref(), &value("sig")?, now_ms)
    }

    #[test]
    fn a_query_grants_its_scope_until_it_expires() {
        let ours = ring(&["ours"]);
        let (endless, short) = (grant(None), grant(Some(100)));

        assert_eq!(
            open(&ours, &endless.to_query(&ours), u64::MAX),
            Some(endless)
        );
        let query = short.to_query(&ours);
        assert_eq!(open(&ours, &query, 99_999), Some(short));
        assert_eq!(open(&ours, &query, 100_000), None);
    }

    #[test]
    fn only_keys_of_the_ring_verify_a_query() {
        let query = grant(None).to_query(&ring(&["old"]));

        assert!(open(&ring(&["new", "old"]), &query, 0).is_some());
        assert!(open(&ring(&["new"]), &query, 0).is_none());
    }

    #[test]
    fn a_changed_query_grants_nothing() {
        let ours = ring(&["ours"]);
        let query = grant(Some(100)).to_query(&ours);
        let without_expiry = query.replace("&expires=100", "");
        let signature = query.split("sig=").nth(1).unwrap();

        for changed in [
            query.replace("a%26b", "a%26c"),
            query.replace("session", "tool"),
            query.replace("=100", "=101"),
            query.replace("=100", "=0100"),
            query.replace("=100", "="),
            query.replace(signature, &signature[1..]),
            query.replace(signature, ""),
            without_expiry,
        ] {
            assert_eq!(open(&ours, &changed, 0), None, "{changed}");
        }
    }
}
