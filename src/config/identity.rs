use std::collections::HashMap;
use std::net::SocketAddr;

use super::{Fault, SettingsError, Values, Warning, named_secrets};
use threadkeep_domain::{KeyRing, NamedSecret, SECRET_BYTES, SigningKey};
use threadkeep_identity::{
    ApiKey, ApiKeys, COOKIE_MAX_AGE_SECONDS, CookieError, CookieSettings, RightError, Rights,
    SameSite, Secure, TrustedProxies,
};

/// Returns the configured signing keys, if any. Missing or short keys are accepted only if `listen` is a loopback
/// address.
pub(super) fn signing_keys(
    values: &mut Values,
    listen: SocketAddr,
    warnings: &mut Vec<Warning>,
) -> Result<Option<KeyRing>, SettingsError> {
    let file = values.take("signing_keys_file");
    let given = values.take("signing_keys").or_file(file)?;
    let keys = named_secrets(&given)?;
    let is_loopback = listen.ip().to_canonical().is_loopback();
    if keys.is_empty() {
        if !is_loopback {
            let fault = Fault::Needed(
                "unless `listen` is a loopback address. Create one: `threadkeep keygen --name main`",
            );
            return Err(given.refuse(fault));
        }
        warnings.push(Warning::RandomSigningKey);
    }
    if let Some(index) = keys.iter().position(|key| key.secret.len() < SECRET_BYTES) {
        if !is_loopback {
            return Err(given.refuse(Fault::Key {
                number: index + 1,
                rule: "its secret must have at least 32 bytes",
            }));
        }
        warnings.push(Warning::ShortSigningKey(keys[index].name.into()));
    }
    let chosen = values.take("signing_key");
    let keys = keys.iter();
    let keys = keys.map(|key| SigningKey::new(key.name, key.secret.as_bytes()));
    match (KeyRing::new(keys.collect()), chosen.filled()) {
        (Err(_), None) => Ok(None),
        (Err(_), Some(_)) => Err(given.refuse(Fault::Needed("as `signing_key` names one of them"))),
        (Ok(ring), None) => Ok(Some(ring)),
        (Ok(ring), Some(name)) => {
            let rule = "the name, without the secret, of one of `signing_keys`";
            let ring = ring.choose(name);
            ring.map(Some)
                .map_err(|_| chosen.refuse(Fault::Expected(rule)))
        }
    }
}

/// Minimum length of an API key, in bytes. Long enough that a random key cannot be guessed over a network.
const API_KEY_BYTES_MIN: usize = 16;

/// Returns the API keys of back ends. Short keys are accepted only if `listen` is a loopback address.
pub(super) fn api_keys(
    values: &mut Values,
    listen: SocketAddr,
    warnings: &mut Vec<Warning>,
) -> Result<ApiKeys, SettingsError> {
    let file = values.take("api_keys_file");
    let given = values.take("api_keys").or_file(file)?;
    let keys = named_secrets(&given)?;
    let is_visible = |secret: &str| secret.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(index) = keys.iter().position(|key| !is_visible(key.secret)) {
        return Err(given.refuse(Fault::Key {
            number: index + 1,
            rule: "its secret must be visible ASCII, as it is sent in a header",
        }));
    }
    let is_loopback = listen.ip().to_canonical().is_loopback();
    let shorter_than = |bytes| keys.iter().position(|key| key.secret.len() < bytes);
    if !is_loopback {
        if let Some(index) = shorter_than(API_KEY_BYTES_MIN) {
            return Err(given.refuse(Fault::Key {
                number: index + 1,
                rule: "its secret must have at least 16 bytes unless `listen` is a loopback address",
            }));
        }
        if let Some(index) = shorter_than(SECRET_BYTES) {
            warnings.push(Warning::ShortApiKey(keys[index].name.into()));
        }
    }
    let mut rights = rights(values, &keys)?;
    let keys = keys.iter().map(|key| {
        let rights = rights.remove(key.name).unwrap_or_default();
        let name = key.name.into();
        (ApiKey { name, rights }, key.secret)
    });
    Ok(ApiKeys::new(keys))
}

/// Parses the rights of API keys: `name:right+right,name:right`.
fn rights(
    values: &mut Values,
    keys: &[NamedSecret<'_>],
) -> Result<HashMap<String, Rights>, SettingsError> {
    let given = values.take("api_key_rights");
    let mut rights = HashMap::new();
    for (index, item) in given.items().enumerate() {
        let fault = |rule| Fault::Key {
            number: index + 1,
            rule,
        };
        let (name, list) = item.split_once(':').unwrap_or((item, ""));
        if !keys.iter().any(|key| key.name == name) {
            return Err(given.refuse(fault(
                "it must be `name:right+right` with the name of an API key",
            )));
        }
        let list = list
            .parse()
            .map_err(|error: RightError| given.refuse(Fault::Other(error.into())))?;
        if rights.insert(name.to_owned(), list).is_some() {
            return Err(given.refuse(fault("its name is taken by an earlier one")));
        }
    }
    Ok(rights)
}

pub(super) fn cookie(values: &mut Values) -> Result<CookieSettings, SettingsError> {
    let name = values.take("cookie_name");
    let same_site = values.take("cookie_same_site");
    let partitioned = values.take("cookie_partitioned");
    let domain = values.take("cookie_domain");
    let same_sites = [
        ("lax", SameSite::Lax),
        ("strict", SameSite::Strict),
        ("none", SameSite::None),
    ];
    let secures = [
        ("auto", Secure::Auto),
        ("always", Secure::Always),
        ("never", Secure::Never),
    ];
    let cookie = CookieSettings {
        name: name.text().into(),
        same_site: same_site.one_of(&same_sites, "lax, strict or none")?,
        secure: values
            .take("cookie_secure")
            .one_of(&secures, "auto, always or never")?,
        partitioned: partitioned.parse("true or false")?,
        domain: domain.filled().map(Into::into),
        max_age_seconds: values.take("cookie_max_age_seconds").within(
            1..=u64::from(COOKIE_MAX_AGE_SECONDS),
            "a number of seconds, 1 to 34560000 (400 days)",
        )? as u32,
    };
    match cookie.check() {
        Ok(()) => Ok(cookie),
        Err(error) => {
            let at_fault = match error {
                CookieError::Name | CookieError::Prefix => name,
                CookieError::Domain => domain,
                CookieError::Insecure if cookie.same_site == SameSite::None => same_site,
                CookieError::Insecure => partitioned,
            };
            Err(at_fault.refuse(Fault::Other(error.into())))
        }
    }
}

pub(super) fn proxies(values: &mut Values) -> Result<TrustedProxies, SettingsError> {
    let given = values.take("trusted_proxies");
    TrustedProxies::parse(given.items()).map_err(|error| given.refuse(Fault::Other(error.into())))
}
