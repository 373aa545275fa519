use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

use super::super::ring_provider;
use super::super::verifier::{JwtSettings, Verifier};

/// Maximum number of keys in a set. Issuers use two or three.
const KEYS_MAX: usize = 64;
/// Maximum number of keys tried for one token. Limited, because each try costs a signature check.
const TRIES_MAX: usize = 4;

pub(super) struct KeySet(Vec<SetKey>);

struct SetKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    verifier: Verifier,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SetError {
    #[error("it is not a JWK Set")]
    Malformed(#[source] serde_json::Error),
    #[error("it has more than {KEYS_MAX} keys")]
    TooMany,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a set. Skips keys of unknown types (RFC 7517, section 5) and keys that are not for verifying signatures.
    pub(super) fn parse(text: &[u8], settings: &JwtSettings) -> Result<Self, SetError> {
        let set: JwkSet = serde_json::from_slice(text).map_err(SetError::Malformed)?;
        if set.keys.len() > KEYS_MAX {
            return Err(SetError::TooMany);
        }
        let keys = set.keys.into_iter();
        let keys = keys.filter_map(|key| SetKey::read(key, settings));
        Ok(Self(keys.collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether any key could verify a token with the key id `id`. A token without a key id matches every key.
    pub(super) fn may_verify(&self, id: Option<&str>) -> bool {
        self.0.iter().any(|key| key.matches_id(id))
    }

    /// Returns the keys that match the header's key id and allow the header's algorithm. The key, not the token,
    /// determines which algorithms are allowed.
    pub(super) fn candidates(&self, header: &Header) -> impl Iterator<Item = &Verifier> {
        let is_candidate = |key: &&SetKey| {
            key.matches_id(header.kid.as_deref()) && key.algorithms.contains(&header.alg)
        };
        let keys = self.0.iter().filter(is_candidate);
        keys.take(TRIES_MAX).map(|key| &key.verifier)
    }
}

impl SetKey {
    fn read(key: Value, settings: &JwtSettings) -> Option<Self> {
        let key: Jwk = serde_json::from_value(key).ok()?;
        let common = &key.common;
        let is_for_signatures =
            matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let operations = common.key_operations.as_ref();
        let verifies =
            operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !is_for_signatures || !verifies {
            return None;
        }
        let mut algorithms = algorithms(&key.algorithm);
        if let Some(named) = common.key_algorithm {
            let named = Algorithm::try_from(named).ok()?;
            algorithms.retain(|algorithm| *algorithm == named);
        }
        if algorithms.is_empty() {
            return None;
        }
        let decoding = DecodingKey::from_jwk(&key)
            .ok()
            .filter(ring_provider::supports)?;
        Some(Self {
            verifier: Verifier::new(decoding, algorithms.clone(), settings),
            algorithms,
            id: key.common.key_id,
        })
    }

    /// Compares key ids. A key without an id verifies only tokens without a key id (RFC 7517, section 4.5).
    fn matches_id(&self, id: Option<&str>) -> bool {
        id.is_none() || self.id.as_deref() == id
    }
}

/// Returns the algorithms that the key type allows. The list is empty for a shared secret, because key sets are public.
fn algorithms(key: &AlgorithmParameters) -> Vec<Algorithm> {
    match key {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) => match key.curve {
            EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Public key of RFC 8037, appendix A.2.
    const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn key(more: &Value) -> Value {
        let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": ED25519});
        for (name, value) in more.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    fn parse(keys: &[Value]) -> Result<KeySet, SetError> {
        let text = json!({"keys": keys}).to_string();
        KeySet::parse(text.as_bytes(), &JwtSettings::default())
    }

    fn tries(set: &KeySet, algorithm: Algorithm, id: Option<&str>) -> usize {
        let header = Header {
            kid: id.map(Into::into),
            ..Header::new(algorithm)
        };
        set.candidates(&header).count()
    }

    #[test]
    fn keys_that_cannot_verify_signatures_are_skipped() {
        let good =
            key(&json!({"kid": "good", "use": "sig", "alg": "EdDSA", "key_ops": ["verify"]}));
        let others = [
            key(&json!({"use": "enc"})),
            key(&json!({"key_ops": ["sign"]})),
            key(&json!({"alg": "RS256"})),
            key(&json!({"alg": "HS256"})),
            key(&json!({"crv": "X25519"})),
            key(&json!({"x": "*"})),
            json!({"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}),
            json!({"kty": "EC", "crv": "P-521", "x": ED25519, "y": ED25519}),
            json!({"kty": "RSA", "n": "A".repeat(255 * 4 / 3), "e": "AQAB"}),
            json!({"kty": "later", "kid": "later"}),
            json!({}),
            json!("key"),
        ];

        for other in &others {
            let alone = parse(std::slice::from_ref(other)).unwrap();
            assert_eq!(alone.len(), 0, "{other}");
        }
        let all = [&others[..], &[good]].concat();
        assert_eq!(parse(&all).unwrap().len(), 1);
    }

    #[test]
    fn a_token_cannot_choose_an_algorithm_that_its_key_does_not_allow() {
        let set = parse(&[key(&json!({"kid": "a"}))]).unwrap();

        assert_eq!(tries(&set, Algorithm::EdDSA, Some("a")), 1);
        for algorithm in [Algorithm::HS256, Algorithm::RS256, Algorithm::ES256] {
            assert_eq!(tries(&set, algorithm, Some("a")), 0);
            assert_eq!(tries(&set, algorithm, None), 0);
        }
    }

    #[test]
    fn a_token_without_a_key_id_is_tried_with_few_keys() {
        let named = |id: usize| key(&json!({"kid": id.to_string()}));
        let mut keys: Vec<_> = (0..10).map(named).collect();
        keys.push(key(&json!({})));
        let set = parse(&keys).unwrap();

        assert_eq!(tries(&set, Algorithm::EdDSA, Some("3")), 1);
        assert_eq!(tries(&set, Algorithm::EdDSA, Some("10")), 0);
        assert_eq!(tries(&set, Algorithm::EdDSA, None), TRIES_MAX);
        assert!(set.may_verify(None) && set.may_verify(Some("3")) && !set.may_verify(Some("10")));
    }

    #[test]
    fn a_set_without_keys_verifies_nothing() {
        let set = parse(&[]).unwrap();

        assert_eq!(tries(&set, Algorithm::EdDSA, None), 0);
        assert!(!set.may_verify(None) && !set.may_verify(Some("a")));
    }

    #[test]
    fn malformed_and_oversized_sets_are_rejected() {
        let many: Vec<_> = (0..=KEYS_MAX).map(|_| key(&json!({}))).collect();

        assert!(matches!(parse(&many), Err(SetError::TooMany)));
        let deep = "[".repeat(100_000);
        for text in ["", "<html>", "[]", "{}", r#"{"keys":{}}"#, &deep] {
            let set = KeySet::parse(text.as_bytes(), &JwtSettings::default());
            assert!(matches!(set, Err(SetError::Malformed(_))), "{text:.10}");
        }
    }
}
