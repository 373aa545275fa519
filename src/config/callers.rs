use std::sync::Arc;

use actix_web::http::header::HeaderName;

use super::{Fault, Given, SettingsError, Values};
use threadkeep_domain::SECRET_BYTES;
use threadkeep_identity::{
    HeaderOwner, Jwks, JwksUrl, JwtOwner, JwtSettings, JwtSubject, Owners, ThreadIdProvider,
    TrustedHeader,
};

#[derive(Debug, Clone, Default)]
pub struct Callers {
    /// Source of thread ids that replaces signed ids.
    pub provider: Option<Arc<dyn ThreadIdProvider>>,
    pub owners: Option<Owners>,
    /// Key set that verifies tokens. A background task keeps the key set up to date.
    pub jwks: Option<Jwks>,
}

#[derive(Clone, Copy, PartialEq)]
enum Credential {
    /// For threads: a signed id. For owners: no credential.
    Own,
    Header,
    Token,
}

enum Keys {
    One(Vec<u8>),
    Set(Jwks),
}

/// Reads the settings that identify callers. `has_proxies` is true if the server trusts any proxies.
pub(super) fn read(values: &mut Values, has_proxies: bool) -> Result<Callers, SettingsError> {
    let rules = [
        (
            "identity",
            "signed",
            "signed, header or jwt",
            "signed or jwt, because `trusted_proxies` is empty and the server trusts no headers",
        ),
        (
            "owner",
            "none",
            "none, header or jwt",
            "none or jwt, because `trusted_proxies` is empty and the server trusts no headers",
        ),
    ];
    let mut credential = |(name, own, rule, without_proxies)| {
        let given = values.take(name);
        let kinds = [
            (own, Credential::Own),
            ("header", Credential::Header),
            ("jwt", Credential::Token),
        ];
        match given.one_of(&kinds, rule)? {
            Credential::Header if !has_proxies => {
                Err(given.refuse(Fault::Expected(without_proxies)))
            }
            credential => Ok(credential),
        }
    };
    let [identity, owner] = [credential(rules[0])?, credential(rules[1])?];
    let required = values.take("owner_required");
    let is_required = required.parse("true or false")?;
    if is_required && owner == Credential::Own {
        return Err(required.refuse(Fault::Expected("false, unless `owner` is header or jwt")));
    }
    let secret = secret(values, identity)?;
    let is_used = |credential| identity == credential || owner == credential;
    let header = values.take("identity_header");
    let header = match is_used(Credential::Header) {
        true => Some(
            header
                .parse::<HeaderName>("the name of a header, as `identity` or `owner` is header")?,
        ),
        false => None,
    };
    let jwt = JwtSettings {
        issuer: values.take("identity_jwt_issuer").filled().map(Into::into),
        audience: values
            .take("identity_jwt_audience")
            .filled()
            .map(Into::into),
    };
    let key_file = values.take("identity_jwt_key_file");
    let jwks_url = values.take("identity_jwt_jwks_url");
    let keys = match is_used(Credential::Token) {
        true => Some(token_keys(&key_file, &jwks_url, &jwt)?),
        false => None,
    };
    let refuse_key = |error| key_file.refuse(Fault::Other(Box::new(error)));
    let provider: Option<Arc<dyn ThreadIdProvider>> = match (identity, &header, &keys) {
        (Credential::Header, Some(name), _) => {
            Some(Arc::new(TrustedHeader::new(name.clone(), &secret)))
        }
        (Credential::Token, _, Some(Keys::Set(set))) => {
            Some(Arc::new(JwtSubject::from_jwks(set.clone(), &secret)))
        }
        (Credential::Token, _, Some(Keys::One(key))) => {
            let subject = JwtSubject::new(key, &jwt, &secret).map_err(refuse_key)?;
            Some(Arc::new(subject))
        }
        _ => None,
    };
    let owners = match (owner, header, &keys) {
        (Credential::Header, Some(name), _) => {
            Some(Owners::new(HeaderOwner::new(name), is_required))
        }
        (Credential::Token, _, Some(Keys::Set(set))) => {
            Some(Owners::new(JwtOwner::from_jwks(set.clone()), is_required))
        }
        (Credential::Token, _, Some(Keys::One(key))) => {
            let owner = JwtOwner::new(key, &jwt).map_err(refuse_key)?;
            Some(Owners::new(owner, is_required))
        }
        _ => None,
    };
    let jwks = match keys {
        Some(Keys::Set(set)) => Some(set),
        _ => None,
    };
    Ok(Callers {
        provider,
        owners,
        jwks,
    })
}

fn secret(values: &mut Values, identity: Credential) -> Result<Vec<u8>, SettingsError> {
    let file = values.take("identity_secret_file");
    let secret = values.take("identity_secret").or_file(file)?;
    if identity != Credential::Own && secret.text().len() < SECRET_BYTES {
        let rule = "a secret of at least 32 bytes, unless `identity` is signed";
        return Err(secret.refuse(Fault::Expected(rule)));
    }
    Ok(secret.text().as_bytes().to_vec())
}

/// Reads the key or the key set that verifies tokens. Setting both is an error.
fn token_keys(
    key_file: &Given,
    jwks_url: &Given,
    jwt: &JwtSettings,
) -> Result<Keys, SettingsError> {
    if jwks_url.filled().is_some() {
        if key_file.filled().is_some() {
            return Err(jwks_url.refuse(Fault::Both(key_file.name)));
        }
        let url = jwks_url.text().parse::<JwksUrl>();
        let url = url.map_err(|error| jwks_url.refuse(Fault::Other(error.into())))?;
        return Ok(Keys::Set(Jwks::new(url, jwt.clone())));
    }
    let needed = Fault::Needed("as `identity` or `owner` is jwt, or else `identity_jwt_jwks_url`");
    let Some(key) = key_file.file()? else {
        return Err(key_file.refuse(needed));
    };
    let key = key.trim_ascii();
    if key.len() < SECRET_BYTES {
        let rule = "a file of a public key or a secret of at least 32 bytes";
        return Err(key_file.refuse(Fault::Expected(rule)));
    }
    Ok(Keys::One(key.to_vec()))
}
