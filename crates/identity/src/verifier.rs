//! Verifies JSON Web Tokens ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519)).

use std::time::{Duration, SystemTime};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;

use super::token_fault::TokenFault;
use super::{ProviderError, ring_provider};

/// Tolerated clock difference between the issuer and this machine. Applies to `exp` and `nbf`.
const LEEWAY_SECONDS: u64 = 60;

/// Requirements on tokens.
#[derive(Debug, Clone, Default)]
pub struct JwtSettings {
    /// Required issuer (`iss`). `None` accepts every issuer.
    pub issuer: Option<String>,
    /// Required audience (`aud`). `None` rejects tokens with an audience.
    pub audience: Option<String>,
}

pub(super) struct Verified {
    /// Never empty.
    pub(super) subject: String,
    /// Expiration of the token, including the leeway.
    pub(super) valid_until: Option<SystemTime>,
}

pub(super) struct Verifier {
    key: DecodingKey,
    validation: Validation,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: f64,
    /// Must be a single string. If a list were allowed, a token with one matching issuer in its list would pass.
    #[serde(default, rename = "iss")]
    _issuer: Option<String>,
}

impl Verifier {
    pub(super) fn new(
        key: DecodingKey,
        algorithms: Vec<Algorithm>,
        settings: &JwtSettings,
    ) -> Self {
        ring_provider::install();
        let mut validation = Validation::new_for_family(key.family());
        validation.algorithms = algorithms;
        validation.leeway = LEEWAY_SECONDS;
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
        Self { key, validation }
    }

    pub(super) fn verify(&self, token: &str) -> Result<Verified, ProviderError> {
        let token = decode::<Claims>(token, &self.key, &self.validation)
            .map_err(|error| ProviderError::from(TokenFault::from(error)))?;
        // an unknown extension may make the token invalid (RFC 7515, section 4.1.11)
        if token.header.crit.is_some() {
            return Err(TokenFault::Extension.into());
        }
        // an empty subject identifies no caller, and all callers with such tokens would share a thread
        if token.claims.sub.is_empty() {
            return Err(ProviderError::Missing);
        }
        let Claims { sub, exp, .. } = token.claims;
        let expires = Duration::try_from_secs_f64(exp + LEEWAY_SECONDS as f64);
        Ok(Verified {
            subject: sub,
            valid_until: expires
                .ok()
                .and_then(|expires| SystemTime::UNIX_EPOCH.checked_add(expires)),
        })
    }
}
