use std::fmt;
use std::time::SystemTime;

use actix_web::HttpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use futures_util::future::BoxFuture;
use jsonwebtoken::DecodingKey;

use super::bearer::bearer;
use super::jwks::Jwks;
use super::verifier::{JwtSettings, Verified, Verifier};
use super::{ProviderError, ThreadIdProvider, TrustedProxies, ring_provider};
use threadkeep_domain::{KeyRing, SigningKey, ThreadId};

/// Derives thread ids from the `sub` claim of bearer tokens (RFC 7519) with a keyed hash. Checks signatures and `exp`.
pub struct JwtSubject {
    keys: TokenKeys,
    ring: KeyRing,
}

pub(super) enum TokenKeys {
    One(Box<Verifier>),
    Set(Jwks),
}

/// Key material that cannot verify tokens.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    /// The PEM text contains no key of a known type.
    #[error("the PEM text has no public key of RSA, EC or Ed25519")]
    Pem(#[source] jsonwebtoken::errors::Error),
    /// The RSA key is private, or its size is out of range.
    #[error("the RSA key is no public key of 2,048 to 8,192 bits")]
    RsaSize,
    /// A public key without PEM armor. If it were used as a shared secret, anyone could sign tokens.
    #[error(
        "this looks like a public key without its lines `-----BEGIN ...-----` and `-----END \
         ...-----`, so it is not taken for a shared secret; add them"
    )]
    MissingPemArmor,
    /// Neither a PEM text nor a shared secret.
    #[error(
        "the key is neither a public key of RSA, EC or Ed25519 in PEM form nor a shared secret of \
         visible ASCII"
    )]
    Unknown,
}

/// Returns `key` if it can be a shared secret. Rejects public keys without PEM armor (JWK, DER or base64), because
/// anyone who has the public key could sign tokens.
fn shared_secret(key: &[u8]) -> Result<&[u8], JwtError> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let text: Vec<u8> = key.iter().copied().filter(|byte| !is_space(byte)).collect();
    let encoded = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"="));
    let encoded = encoded.unwrap_or(&text);
    let decoded = STANDARD_NO_PAD.decode(encoded);
    let decoded = decoded.or_else(|_| URL_SAFE_NO_PAD.decode(encoded));
    if is_der(key) || decoded.is_ok_and(|bytes| is_der(&bytes)) {
        return Err(JwtError::MissingPemArmor);
    }
    if key.starts_with(b"{") || !key.iter().all(u8::is_ascii_graphic) {
        return Err(JwtError::Unknown);
    }
    Ok(key)
}

/// Returns whether `bytes` form a single ASN.1 sequence, as keys and certificates do (ITU-T X.690, section 8.1). One in
/// 65,536 random base64 secrets also matches, and is rejected although it is valid.
fn is_der(bytes: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = bytes else {
        return false;
    };
    let octets = match length {
        0..0x80 => return rest.len() == usize::from(*length),
        octets => usize::from(octets & 0x7f),
    };
    let Some((length, content)) = rest.split_at_checked(octets).filter(|_| octets <= 4) else {
        return false;
    };
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    octets > 0 && content.len() == length
}

impl TokenKeys {
    pub(super) fn one(key: &[u8], settings: &JwtSettings) -> Result<Self, JwtError> {
        let key = if let Some(pem) = memchr::memmem::find(key, b"-----BEGIN ") {
            let key = &key[pem..];
            DecodingKey::from_rsa_pem(key)
                .or_else(|_| DecodingKey::from_ec_pem(key))
                .or_else(|_| DecodingKey::from_ed_pem(key))
                .map_err(JwtError::Pem)?
        } else {
            DecodingKey::from_secret(shared_secret(key)?)
        };
        if !ring_provider::supports(&key) {
            return Err(JwtError::RsaSize);
        }
        let algorithms = key.family().algorithms().to_vec();
        let verifier = Verifier::new(key, algorithms, settings);
        Ok(Self::One(Box::new(verifier)))
    }

    pub(super) fn prepare(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        match self {
            Self::One(_) => None,
            Self::Set(set) => set.prepare(bearer(request.headers())?),
        }
    }

    pub(super) fn verify(&self, token: &str) -> Result<Verified, ProviderError> {
        match self {
            Self::One(verifier) => verifier.verify(token),
            Self::Set(set) => set.verify(token, |verifier| verifier.verify(token)),
        }
    }

    /// Returns the time at which the request's token expires, or a past time if the token is not valid now.
    pub(super) fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        let token = bearer(request.headers())?;
        match self.verify(token) {
            Ok(verified) => verified.valid_until,
            Err(_) => Some(SystemTime::UNIX_EPOCH),
        }
    }
}

impl JwtSubject {
    /// Verifies tokens with `key`, which is a public key in PEM form or a shared secret of visible ASCII (HS256, HS384,
    /// HS512). The allowed algorithms depend only on `key`. `secret` keys the hash that derives the thread ids.
    ///
    /// Installs a [`CryptoProvider`](jsonwebtoken::crypto::CryptoProvider) based on `ring`, unless the application has
    /// already installed a provider. The installed provider can also sign, but cannot compute thumbprints.
    pub fn new(key: &[u8], settings: &JwtSettings, secret: &[u8]) -> Result<Self, JwtError> {
        Ok(Self::with(TokenKeys::one(key, settings)?, secret))
    }

    /// Verifies tokens with the keys of a set, which you must [keep fresh](Jwks::keep_fresh). `secret` keys the hash
    /// that derives the thread ids.
    #[must_use]
    pub fn from_jwks(keys: Jwks, secret: &[u8]) -> Self {
        Self::with(TokenKeys::Set(keys), secret)
    }

    fn with(keys: TokenKeys, secret: &[u8]) -> Self {
        let ring = KeyRing::new(vec![SigningKey::new("identity", secret)]);
        Self {
            keys,
            ring: ring.expect("the ring has a key"),
        }
    }
}

impl ThreadIdProvider for JwtSubject {
    fn is_ambient(&self) -> bool {
        false
    }

    fn prepare(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        self.keys.prepare(request)
    }

    fn thread_id(
        &self,
        request: &HttpRequest,
        _: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError> {
        let token = bearer(request.headers()).ok_or(ProviderError::Missing)?;
        let subject = self.keys.verify(token)?.subject;
        Ok(self.ring.derive("sub", &[subject.as_bytes()]))
    }

    fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        self.keys.valid_until(request)
    }
}

impl fmt::Debug for JwtSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtSubject").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::AUTHORIZATION;
    use actix_web::test::TestRequest;
    use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
    use serde_json::json;

    use super::*;

    fn provider(settings: &JwtSettings) -> JwtSubject {
        JwtSubject::new(b"shared", settings, b"hash").unwrap()
    }

    fn thread_of(
        provider: &JwtSubject,
        key: &[u8],
        claims: &serde_json::Value,
    ) -> Option<ThreadId> {
        let token = encode(&Header::default(), claims, &EncodingKey::from_secret(key)).unwrap();
        let request = TestRequest::default()
            .insert_header((AUTHORIZATION, format!("Bearer {token}")))
            .to_http_request();
        provider
            .thread_id(&request, &TrustedProxies::default())
            .ok()
    }

    #[test]
    fn each_subject_has_one_thread() {
        let provider = provider(&JwtSettings::default());
        let exp = get_current_timestamp() + 60;

        let ada = thread_of(&provider, b"shared", &json!({"sub": "ada", "exp": exp}));
        let again = thread_of(&provider, b"shared", &json!({"sub": "ada", "exp": exp + 1}));
        let bob = thread_of(&provider, b"shared", &json!({"sub": "bob", "exp": exp}));

        assert!(ada.is_some());
        assert_eq!(ada, again);
        assert_ne!(ada, bob);
    }

    #[test]
    fn a_token_with_critical_extensions_is_rejected() {
        let provider = provider(&JwtSettings::default());
        let claims = json!({"sub": "ada", "exp": get_current_timestamp() + 60});
        let is_accepted = |crit: Option<Vec<String>>| {
            let header = Header {
                crit,
                ..Header::default()
            };
            let token = encode(&header, &claims, &EncodingKey::from_secret(b"shared")).unwrap();
            let request = TestRequest::default()
                .insert_header((AUTHORIZATION, format!("Bearer {token}")))
                .to_http_request();
            let result = provider.thread_id(&request, &TrustedProxies::default());
            result.is_ok()
        };

        assert!(is_accepted(None));
        assert!(!is_accepted(Some(vec!["b64".into()])));
        assert!(!is_accepted(Some(Vec::new())));
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let provider = provider(&JwtSettings::default());
        let now = get_current_timestamp();
        let at = |exp: u64, nbf: u64| {
            let claims = json!({"sub": "ada", "exp": exp, "nbf": nbf});
            thread_of(&provider, b"shared", &claims).is_some()
        };

        assert!(at(now - 30, now));
        assert!(!at(now - 90, now));
        assert!(at(now + 60, now + 30));
        assert!(!at(now + 60, now + 90));
    }

    #[test]
    fn a_public_key_without_pem_armor_is_not_a_shared_secret() {
        // output of `openssl genpkey -algorithm ed25519 | openssl pkey -pubout`
        const PUBLIC: &str = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        let (start, end) = PUBLIC.split_at(32);
        let der = base64::engine::general_purpose::STANDARD.decode(PUBLIC);
        let open = |key: &[u8]| JwtSubject::new(key, &JwtSettings::default(), b"hash");
        let url_safe = PUBLIC.replace('+', "-").replace('/', "_");

        for key in [
            PUBLIC.as_bytes(),
            PUBLIC.trim_end_matches('=').as_bytes(),
            url_safe.as_bytes(),
            format!("{start}\n{end}\n").as_bytes(),
            format!("{start}\r\n  {end}").as_bytes(),
            &der.unwrap(),
        ] {
            let error = open(key).unwrap_err();

            assert!(matches!(error, JwtError::MissingPemArmor), "{error}");
        }
        assert!(matches!(open(b"{}"), Err(JwtError::Unknown)));
        assert!(matches!(open(b"two words"), Err(JwtError::Unknown)));
        for secret in [
            "a-shared-secret-of-at-least-32-bytes",
            "MCowBQYDK2VwAyEA",
            "MA",
        ] {
            open(secret.as_bytes()).unwrap();
        }
    }

    #[test]
    fn forged_expired_and_foreign_tokens_are_rejected() {
        let provider = provider(&JwtSettings {
            issuer: Some("us".into()),
            audience: Some("threads".into()),
        });
        let exp = get_current_timestamp() + 60;
        let good = json!({"sub": "ada", "exp": exp, "iss": "us", "aud": "threads"});

        assert!(thread_of(&provider, b"shared", &good).is_some());
        assert!(thread_of(&provider, b"other", &good).is_none());
        for (claim, value) in [
            ("exp", json!(get_current_timestamp() - 3600)),
            ("iss", json!("them")),
            ("aud", json!("others")),
            ("iss", json!(null)),
            ("sub", json!(null)),
            ("sub", json!("")),
        ] {
            let mut claims = good.clone();
            claims[claim] = value;
            assert!(
                thread_of(&provider, b"shared", &claims).is_none(),
                "{claims}"
            );
        }
    }
}
