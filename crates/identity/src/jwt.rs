//! One thread for each subject of a JSON Web Token.

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

/// Thread ids as a keyed hash of the claim `sub` of the token in `Authorization: Bearer`, whose
/// signature and `exp` are verified (RFC 7519).
pub struct JwtSubject {
    keys: TokenKeys,
    ring: KeyRing,
}

/// The keys that verify tokens.
pub(super) enum TokenKeys {
    One(Box<Verifier>),
    Set(Jwks),
}

/// A key that no token can be verified with.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    /// A PEM text without a key that is known.
    #[error("the PEM text has no public key of RSA, EC or Ed25519")]
    Pem(#[source] jsonwebtoken::errors::Error),
    /// An RSA key that is private, or of another size.
    #[error("the RSA key is no public key of 2,048 to 8,192 bits")]
    RsaSize,
    /// Key material that everybody may have, and could sign with if it were a shared secret.
    #[error(
        "this looks like a public key without its lines `-----BEGIN ...-----` and `-----END \
         ...-----`, so it is not taken for a shared secret; add them"
    )]
    MissingPemArmor,
    /// Neither of the two.
    #[error(
        "the key is neither a public key of RSA, EC or Ed25519 in PEM form nor a shared secret of \
         visible ASCII"
    )]
    Unknown,
}

/// The bytes of a shared secret. Public key material in another form must not be taken for one:
/// everybody has it, and could sign.
///
/// # Errors
/// [`JwtError`] for a JSON Web Key, a key in DER form, and the base64 that stands between the lines
/// of a PEM text, on one line or on several.
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

/// Whether the bytes are one ASN.1 sequence from the first to the last, as keys and certificates are
/// (ITU-T X.690, section 8.1). Of the secrets that are random bytes in base64, one in 65,536 looks so
/// too, and has to be made again.
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
    /// The key in those bytes: see [`JwtSubject::new`].
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

    /// The wait before a token is verified.
    pub(super) fn prepare(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        match self {
            Self::One(_) => None,
            Self::Set(set) => set.prepare(bearer(request.headers())?),
        }
    }

    /// Verifies a token.
    pub(super) fn verify(&self, token: &str) -> Result<Verified, ProviderError> {
        match self {
            Self::One(verifier) => verifier.verify(token),
            Self::Set(set) => set.verify(token, |verifier| verifier.verify(token)),
        }
    }

    /// When the token of a request expires: in the past, if it does not verify now.
    pub(super) fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        let token = bearer(request.headers())?;
        match self.verify(token) {
            Ok(verified) => verified.valid_until,
            Err(_) => Some(SystemTime::UNIX_EPOCH),
        }
    }
}

impl JwtSubject {
    /// Verifies with that key: a public key in PEM form, or else the bytes of a shared secret
    /// (HS256, HS384, HS512), which is visible ASCII. Which algorithms a token may name follows from
    /// the key alone.
    /// `secret` is what the ids are hashed with.
    ///
    /// Tokens are verified by the process's [`CryptoProvider`](jsonwebtoken::crypto::CryptoProvider). Unless the
    /// application has installed one, this installs one over `ring`, which signs too but computes no thumbprints.
    ///
    /// # Errors
    /// [`JwtError`] when no key is found in the bytes, or when they may be a public one in a form
    /// that could be mistaken for a secret.
    pub fn new(key: &[u8], settings: &JwtSettings, secret: &[u8]) -> Result<Self, JwtError> {
        Ok(Self::with(TokenKeys::one(key, settings)?, secret))
    }

    /// Verifies with the keys of a set, which you have to [keep fresh](Jwks::keep_fresh). `secret` keys the hash that
    /// makes the ids.
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
    /// No browser adds a bearer token by itself.
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

    fn ask(provider: &JwtSubject, key: &[u8], claims: &serde_json::Value) -> Option<ThreadId> {
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

        let ada = ask(&provider, b"shared", &json!({"sub": "ada", "exp": exp}));
        let again = ask(&provider, b"shared", &json!({"sub": "ada", "exp": exp + 1}));
        let bob = ask(&provider, b"shared", &json!({"sub": "bob", "exp": exp}));

        assert!(ada.is_some());
        assert_eq!(ada, again);
        assert_ne!(ada, bob);
    }

    #[test]
    fn a_token_with_critical_extensions_names_nobody() {
        let provider = provider(&JwtSettings::default());
        let claims = json!({"sub": "ada", "exp": get_current_timestamp() + 60});
        let ask = |crit: Option<Vec<String>>| {
            let header = Header {
                crit,
                ..Header::default()
            };
            let token = encode(&header, &claims, &EncodingKey::from_secret(b"shared")).unwrap();
            let request = TestRequest::default()
                .insert_header((AUTHORIZATION, format!("Bearer {token}")))
                .to_http_request();
            let asked = provider.thread_id(&request, &TrustedProxies::default());
            asked.is_ok()
        };

        assert!(ask(None));
        assert!(!ask(Some(vec!["b64".into()])));
        assert!(!ask(Some(Vec::new())));
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let provider = provider(&JwtSettings::default());
        let now = get_current_timestamp();
        let at = |exp: u64, nbf: u64| {
            let claims = json!({"sub": "ada", "exp": exp, "nbf": nbf});
            ask(&provider, b"shared", &claims).is_some()
        };

        assert!(at(now - 30, now));
        assert!(!at(now - 90, now));
        assert!(at(now + 60, now + 30));
        assert!(!at(now + 60, now + 90));
    }

    #[test]
    fn a_public_key_without_its_armour_is_no_shared_secret() {
        // of `openssl genpkey -algorithm ed25519 | openssl pkey -pubout`
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
            let refused = open(key).unwrap_err();

            assert!(matches!(refused, JwtError::MissingPemArmor), "{refused}");
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
    fn a_token_that_is_forged_old_or_for_others_names_nobody() {
        let provider = provider(&JwtSettings {
            issuer: Some("us".into()),
            audience: Some("threads".into()),
        });
        let exp = get_current_timestamp() + 60;
        let good = json!({"sub": "ada", "exp": exp, "iss": "us", "aud": "threads"});

        assert!(ask(&provider, b"shared", &good).is_some());
        assert!(ask(&provider, b"other", &good).is_none());
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
            assert!(ask(&provider, b"shared", &claims).is_none(), "{claims}");
        }
    }
}
