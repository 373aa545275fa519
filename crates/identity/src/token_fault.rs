use jsonwebtoken::errors::{Error, ErrorKind};

use super::ProviderError;

/// The reason for rejecting a token, for the log. Omits the library's errors, because they may quote the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenFault {
    #[error("the signature of the token does not match the key")]
    Signature,
    #[error("the algorithm of the token is not one of the key")]
    Algorithm,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    Early,
    #[error("the token has another issuer (`iss`)")]
    Issuer,
    #[error("the token has another audience (`aud`)")]
    Audience,
    #[error("the token lacks a required claim")]
    Claim,
    #[error("the token has critical extensions (`crit`)")]
    Extension,
    #[error("no key of the set fits the token")]
    NoKey,
    #[error("the token is malformed")]
    Malformed,
}

impl From<Error> for TokenFault {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidSignature => Self::Signature,
            ErrorKind::InvalidAlgorithm => Self::Algorithm,
            ErrorKind::ExpiredSignature => Self::Expired,
            ErrorKind::ImmatureSignature => Self::Early,
            ErrorKind::InvalidIssuer => Self::Issuer,
            ErrorKind::InvalidAudience => Self::Audience,
            ErrorKind::MissingRequiredClaim(_) => Self::Claim,
            _ => Self::Malformed,
        }
    }
}

impl From<TokenFault> for ProviderError {
    fn from(fault: TokenFault) -> Self {
        Self::Untrusted(Some(fault.into()))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::AUTHORIZATION;
    use actix_web::test::TestRequest;
    use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
    use serde_json::{Value, json};

    use super::TokenFault;
    use crate::{JwtSettings, JwtSubject, ProviderError, ThreadIdProvider, TrustedProxies};

    fn fault(key: &[u8], claims: &Value) -> TokenFault {
        let settings = JwtSettings {
            issuer: Some("me".into()),
            audience: Some("us".into()),
        };
        let provider = JwtSubject::new(b"shared", &settings, b"hash").unwrap();
        let token = encode(&Header::default(), claims, &EncodingKey::from_secret(key)).unwrap();
        let request = TestRequest::default()
            .insert_header((AUTHORIZATION, format!("Bearer {token}")))
            .to_http_request();
        match provider.thread_id(&request, &TrustedProxies::default()) {
            Err(ProviderError::Untrusted(Some(cause))) => *cause.downcast().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_cause_of_a_rejection_is_named() {
        let now = get_current_timestamp();
        let good = json!({"sub": "ada", "exp": now + 60, "iss": "me", "aud": "us"});
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            claims
        };

        assert_eq!(fault(b"other", &good), TokenFault::Signature);
        for (claims, cause) in [
            (with("exp", json!(now - 61)), TokenFault::Expired),
            (with("nbf", json!(now + 3_600)), TokenFault::Early),
            (with("iss", json!("them")), TokenFault::Issuer),
            (with("aud", json!("them")), TokenFault::Audience),
            (with("exp", json!("soon")), TokenFault::Malformed),
            (json!({"sub": "ada", "exp": now + 60}), TokenFault::Claim),
        ] {
            assert_eq!(fault(b"shared", &claims), cause, "{claims}");
        }
    }
}
