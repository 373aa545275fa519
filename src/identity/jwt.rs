//! One thread for each subject of a JSON Web Token.

use std::fmt;

use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;
use jsonwebtoken::{DecodingKey, Validation, decode};
use serde::Deserialize;

use super::provider::{ProviderError, ThreadIdProvider};
use super::proxies::TrustedProxies;
use crate::domain::{KeyRing, SigningKey, ThreadId};

/// What a token must be.
#[derive(Debug, Clone, Default)]
pub struct JwtSettings {
    /// Whom it must come from (`iss`); none: anybody who has the key.
    pub issuer: Option<String>,
    /// Whom it must be for (`aud`); none: a token for an audience is refused.
    pub audience: Option<String>,
}

/// Thread ids as a keyed hash of the claim `sub` of the token in `Authorization: Bearer`, whose
/// signature and `exp` are verified (RFC 7519).
pub struct JwtSubject {
    key: DecodingKey,
    validation: Validation,
    ring: KeyRing,
}

/// A key that no token can be verified with.
#[derive(Debug, thiserror::Error)]
#[error(
    "the key is neither a public key of RSA, EC or Ed25519 in PEM form nor a shared secret of \
     visible ASCII"
)]
pub struct JwtError(#[source] Option<jsonwebtoken::errors::Error>);

/// Whether the bytes can be a shared secret. Public key material in another form, such as a JSON
/// Web Key or DER, must not be taken for one: everybody has it, and could sign.
fn is_secret(key: &[u8]) -> bool {
    !key.starts_with(b"{") && key.iter().all(u8::is_ascii_graphic)
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl JwtSubject {
    /// Verifies with that key: a public key in PEM form, or else the bytes of a shared secret
    /// (HS256, HS384, HS512), which is visible ASCII. Which algorithms a token may name follows from the key alone.
    /// `secret` is what the ids are hashed with.
    ///
    /// # Errors
    /// [`JwtError`] when a PEM text holds no key that is known.
    pub fn new(key: &[u8], settings: &JwtSettings, secret: &[u8]) -> Result<Self, JwtError> {
        let key = if let Some(pem) = memchr::memmem::find(key, b"-----BEGIN ") {
            let key = &key[pem..];
            DecodingKey::from_rsa_pem(key)
                .or_else(|_| DecodingKey::from_ec_pem(key))
                .or_else(|_| DecodingKey::from_ed_pem(key))
                .map_err(|error| JwtError(Some(error)))?
        } else if is_secret(key) {
            DecodingKey::from_secret(key)
        } else {
            return Err(JwtError(None));
        };
        let mut validation = Validation::new_for_family(key.family());
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "sub"]);
        if let Some(issuer) = &settings.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".into());
        }
        if let Some(audience) = &settings.audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".into());
        }
        let ring = KeyRing::new(vec![SigningKey::new("identity", secret)]);
        Ok(Self {
            key,
            validation,
            ring: ring.expect("the ring has a key"),
        })
    }
}

impl ThreadIdProvider for JwtSubject {
    /// No browser adds a bearer token by itself.
    fn is_ambient(&self) -> bool {
        false
    }

    fn thread_id(
        &self,
        request: &HttpRequest,
        _proxies: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError> {
        let token = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or(ProviderError::Missing)?;
        let token = decode::<Claims>(token, &self.key, &self.validation)
            .map_err(|error| ProviderError::Untrusted(Some(error.into())))?;
        Ok(self.ring.derive("sub", &[token.claims.sub.as_bytes()]))
    }
}

impl fmt::Debug for JwtSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtSubject").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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
        ] {
            let mut claims = good.clone();
            claims[claim] = value;
            assert!(ask(&provider, b"shared", &claims).is_none(), "{claims}");
        }
    }
}
