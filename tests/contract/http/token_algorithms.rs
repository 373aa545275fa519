use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::jwks::{Issuer, answer, await_keys, is_accepted, sign};
use super::providers::{by_token, file, openssl};
use crate::support::server::Backend;

struct KeyPair {
    private: Vec<u8>,
    public: PathBuf,
    /// The public key as `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    der: Vec<u8>,
}

impl KeyPair {
    fn new(name: &str, options: &[&str]) -> Self {
        let path = |end| file(&format!("algorithms-{name}.{end}"), "");
        let (private, public, der) = (path("key"), path("pem"), path("der"));
        let generate = [&["genpkey", "-algorithm"], options, &["-out"]].concat();
        openssl(&generate, &private, None);
        openssl(&["pkey", "-pubout", "-in"], &private, Some(&public));
        let to_der = ["pkey", "-pubin", "-outform", "DER", "-in"];
        openssl(&to_der, &public, Some(&der));
        Self {
            private: fs::read(private).unwrap(),
            public,
            der: fs::read(der).unwrap(),
        }
    }

    fn der_suffix(&self, length: usize, skip: usize) -> String {
        let end = self.der.len() - skip;
        URL_SAFE_NO_PAD.encode(&self.der[end - length..end])
    }
}

fn forged(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let mut signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    signature[7] ^= 1;
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn assert_verifies_own_tokens(
    pair: &KeyPair,
    jwk: Value,
    key: EncodingKey,
    algorithms: &[Algorithm],
) {
    let set = json!({"keys": [jwk]}).to_string();
    let issuer = Issuer::start(Some(answer("200 OK", "", &set)));
    let by_set = issuer.builder().start();
    let by_file = by_token(Backend::Memory, &pair.public).start();
    await_keys(&by_set, &sign(algorithms[0], &key, None)).await;

    for algorithm in algorithms {
        let token = sign(*algorithm, &key, None);
        for server in [&by_set, &by_file] {
            assert!(is_accepted(server, &token).await, "{algorithm:?}");
            assert!(!is_accepted(server, &forged(&token)).await, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn rsa_keys_verify_both_paddings_with_three_hashes() {
    use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
    let pair = KeyPair::new("rsa", &["RSA"]);
    // include the leading zero of the modulus, as some issuers do; skip the 5 bytes of the exponent at the end
    let modulus = pair.der_suffix(257, 5);
    assert!(modulus.starts_with("A"));
    let jwk = json!({"kty": "RSA", "n": modulus, "e": "AQAB"});
    let key = EncodingKey::from_rsa_pem(&pair.private).unwrap();

    let algorithms = [RS256, RS384, RS512, PS256, PS384, PS512];
    assert_verifies_own_tokens(&pair, jwk, key, &algorithms).await;
}

#[tokio::test]
async fn elliptic_curves_verify_with_their_own_hash() {
    for (curve, size, algorithm) in [
        ("P-256", 32, Algorithm::ES256),
        ("P-384", 48, Algorithm::ES384),
    ] {
        let options = format!("ec_paramgen_curve:{curve}");
        let pair = KeyPair::new(curve, &["EC", "-pkeyopt", &options]);
        let (x, y) = (pair.der_suffix(size, size), pair.der_suffix(size, 0));
        let jwk = json!({"kty": "EC", "crv": curve, "x": x, "y": y});
        let key = EncodingKey::from_ec_pem(&pair.private).unwrap();

        assert_verifies_own_tokens(&pair, jwk, key, &[algorithm]).await;
    }
}

#[tokio::test]
async fn ed25519_verifies() {
    let pair = KeyPair::new("ed25519", &["ed25519"]);
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": pair.der_suffix(32, 0)});
    let key = EncodingKey::from_ed_pem(&pair.private).unwrap();

    assert_verifies_own_tokens(&pair, jwk, key, &[Algorithm::EdDSA]).await;
}

#[tokio::test]
async fn shared_secrets_verify_with_three_hashes() {
    use Algorithm::{HS256, HS384, HS512};
    let secret = "a-shared-secret-of-at-least-32-bytes";
    let server = by_token(Backend::Memory, &file("algorithms-secret", secret)).start();
    let key = EncodingKey::from_secret(secret.as_bytes());

    for algorithm in [HS256, HS384, HS512] {
        let token = sign(algorithm, &key, None);
        assert!(is_accepted(&server, &token).await, "{algorithm:?}");
        assert!(
            !is_accepted(&server, &forged(&token)).await,
            "{algorithm:?}"
        );
    }
}

#[test]
fn an_rsa_key_of_less_than_2048_bits_is_refused() {
    let pair = KeyPair::new("short", &["RSA", "-pkeyopt", "rsa_keygen_bits:1024"]);

    let (status, log) = by_token(Backend::Memory, &pair.public).start_refused();

    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("2,048 to 8,192 bits"), "{log}");
}
