//! The cookie with the signed thread id, in the format of Agentuity's runtime.

use std::sync::Arc;

use actix_web::http::header::{COOKIE, HeaderMap, HeaderValue};
use memchr::{memchr, memchr3, memchr3_iter};
use percent_encoding::percent_decode;

use super::replacement::ReplacementCookie;
use super::{Caller, Source};
use threadkeep_domain::{KeyRing, ThreadId};

/// Maximum cookie lifetime that browsers accept: 400 days (draft-ietf-httpbis-rfc6265bis, section 5.5).
pub const MAX_AGE_SECONDS: u32 = 34_560_000;

/// The cookie's name and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieSettings {
    /// Name of the cookie.
    pub name: String,
    /// Which requests from other sites include the cookie.
    pub same_site: SameSite,
    /// Whether the cookie is restricted to https.
    pub secure: Secure,
    /// Whether browsers store the cookie per top-level site (CHIPS).
    pub partitioned: bool,
    /// Domain that the cookie covers, including subdomains. If `None`, the cookie covers only the host.
    pub domain: Option<String>,
    /// Number of seconds for which browsers keep the cookie, up to 34,560,000. The thread itself may expire earlier.
    pub max_age_seconds: u32,
}

/// The attribute `SameSite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// No requests from other sites.
    Strict,
    /// Navigation from other sites.
    Lax,
    /// All requests from other sites.
    None,
}

/// The attribute `Secure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secure {
    /// If the request came over https.
    Auto,
    /// On every response.
    Always,
    /// On no response.
    Never,
}

/// Settings that browsers would reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// The name is empty, or contains a character that is not allowed (RFC 6265, section 4.1.1).
    #[error("the name of a cookie must be a token of visible ASCII")]
    Name,
    /// The name begins with `__Host-` or `__Secure-`, but the settings violate the browsers' rules for this prefix.
    #[error(
        "a cookie named `__Host-` must be secure always and without a domain, one named `__Secure-` secure always"
    )]
    Prefix,
    /// `SameSite=None` and `Partitioned` require a secure cookie.
    #[error("browsers accept SameSite=None and Partitioned only if `cookie_secure` is always")]
    Insecure,
    /// The domain contains a character that would end the attribute.
    #[error("the domain of a cookie must be a host name")]
    Domain,
}

impl Default for CookieSettings {
    fn default() -> Self {
        Self {
            name: "atid".into(),
            same_site: SameSite::Lax,
            secure: Secure::Auto,
            partitioned: false,
            domain: None,
            max_age_seconds: MAX_AGE_SECONDS,
        }
    }
}

impl CookieSettings {
    /// Checks that browsers would accept the settings.
    pub fn check(&self) -> Result<(), CookieError> {
        let is_token =
            |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&byte);
        if self.name.is_empty() || !self.name.bytes().all(is_token) {
            return Err(CookieError::Name);
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if self
            .domain
            .as_ref()
            .is_some_and(|domain| domain.is_empty() || !domain.bytes().all(is_host))
        {
            return Err(CookieError::Domain);
        }
        let always = self.secure == Secure::Always;
        // browsers ignore the case of these prefixes
        let name = self.name.to_ascii_lowercase();
        if name.starts_with("__host-") && (!always || self.domain.is_some())
            || name.starts_with("__secure-") && !always
        {
            return Err(CookieError::Prefix);
        }
        if (self.same_site == SameSite::None || self.partitioned) && !always {
            return Err(CookieError::Insecure);
        }
        Ok(())
    }

    fn attributes(&self, is_https: bool) -> String {
        let same_site = match self.same_site {
            SameSite::Strict => "Strict",
            SameSite::Lax => "Lax",
            SameSite::None => "None",
        };
        let max_age = self.max_age_seconds;
        let mut text = format!("; Path=/; HttpOnly; SameSite={same_site}; Max-Age={max_age}");
        if let Some(domain) = &self.domain {
            text.push_str("; Domain=");
            text.push_str(domain);
        }
        if self.secure == Secure::Always || self.secure == Secure::Auto && is_https {
            text.push_str("; Secure");
        }
        if self.partitioned {
            text.push_str("; Partitioned");
        }
        text
    }
}

#[derive(Debug)]
pub(super) struct Cookie {
    pub(super) settings: CookieSettings,
    pub(super) replacement: ReplacementCookie,
    attributes: Attributes,
}

#[derive(Debug)]
pub(super) struct Attributes {
    http: String,
    https: String,
}

impl Cookie {
    pub(super) fn new(settings: CookieSettings) -> Self {
        Self {
            attributes: Attributes::new(&settings),
            replacement: ReplacementCookie::new(&settings),
            settings,
        }
    }

    /// Checks every cookie with the configured name, because a browser may send one for each path and domain.
    pub(super) fn find(&self, headers: &HeaderMap, ring: &KeyRing) -> Caller {
        let mut rejected_cookie = None;
        for value in cookie_values(&self.settings.name, headers) {
            match verify(value, ring) {
                Ok(caller) => return self.replacing(caller, headers, ring),
                Err(rejected) => rejected_cookie = rejected_cookie.max(Some(rejected)),
            }
        }
        Caller {
            rejected_cookie,
            ..Caller::of(ThreadId::random(), Source::Minted)
        }
    }

    /// Returns the caller that the replacement cookie names, or else `caller`. If the cookie names a caller, the
    /// response sets that caller's id.
    fn replacing(&self, caller: Caller, headers: &HeaderMap, ring: &KeyRing) -> Caller {
        let next = self.replacement.next_of(&caller.id, headers, ring);
        match next {
            Some(next) => Caller {
                signed: None,
                ..next
            },
            None => caller,
        }
    }

    pub(super) fn set(&self, signed: &HeaderValue, is_https: bool) -> HeaderValue {
        let attributes = self.attributes.of(is_https);
        let name = &self.settings.name;
        let escapes = memchr3_iter(b'+', b'/', b'=', signed.as_bytes()).count();
        // the exact capacity avoids a reallocation when the bytes become a header value
        let fixed_bytes = name.len() + 1 + attributes.len();
        let mut text = Vec::with_capacity(fixed_bytes + signed.len() + 2 * escapes);
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        write_value(&mut text, signed.as_bytes());
        text.extend_from_slice(attributes.as_bytes());
        HeaderValue::try_from(text).expect("name and domain were checked, the rest is ASCII")
    }
}

impl Attributes {
    pub(super) fn new(settings: &CookieSettings) -> Self {
        Self {
            http: settings.attributes(false),
            https: settings.attributes(true),
        }
    }

    pub(super) fn of(&self, is_https: bool) -> &str {
        match is_https {
            true => &self.https,
            false => &self.http,
        }
    }
}

/// Returns the values of the cookies named `name`. Works on bytes, so that another application's non-UTF-8 cookie
/// cannot hide this server's cookie.
pub(super) fn cookie_values<'a>(
    name: &str,
    headers: &'a HeaderMap,
) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.get_all(COOKIE).map(HeaderValue::as_bytes);
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let pair = pair.trim_ascii();
        let equals = memchr(b'=', pair)?;
        (pair[..equals] == *name.as_bytes()).then(|| &pair[equals + 1..])
    })
}

/// Appends the signed id to `text` in the cookie's format. Escapes the base64 signature as `encodeURIComponent` does.
pub(super) fn write_value(text: &mut Vec<u8>, signed: &[u8]) {
    let id_bytes = memchr(b';', signed).unwrap_or(signed.len());
    let (id, signature) = signed.split_at(id_bytes);
    let mut signature = signature.get(1..).unwrap_or_default();
    text.extend_from_slice(id);
    text.push(b'.');
    while let Some(at) = memchr3(b'+', b'/', b'=', signature) {
        text.extend_from_slice(&signature[..at]);
        text.extend_from_slice(match signature[at] {
            b'+' => b"%2B",
            b'/' => b"%2F",
            _ => b"%3D",
        });
        signature = &signature[at + 1..];
    }
    text.extend_from_slice(signature);
}

/// Why a cookie was ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RejectedCookie {
    /// The value is not a signed id.
    Malformed,
    /// No key verifies the signed id. A signing key may be missing from the ring.
    Unverified,
}

pub(super) fn verify(value: &[u8], ring: &KeyRing) -> Result<Caller, RejectedCookie> {
    let decoded = percent_decode(value).decode_utf8();
    let parts = decoded
        .as_deref()
        .ok()
        .and_then(|text| text.split_once('.'));
    let (id, signature) = parts.ok_or(RejectedCookie::Malformed)?;
    let signed = ring.verify(id, signature).ok_or_else(|| {
        if KeyRing::is_well_formed(id, signature) {
            RejectedCookie::Unverified
        } else {
            RejectedCookie::Malformed
        }
    })?;
    let header = signed.is_current.then(|| format!("{id};{signature}"));
    Ok(Caller {
        key_name: Some(Arc::clone(signed.key_name)),
        signed: header.and_then(|text| HeaderValue::try_from(text).ok()),
        ..Caller::of(signed.id, Source::Cookie)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_prefix_requires_its_attributes() {
        let settings = |name: &str, secure, domain: Option<&str>| CookieSettings {
            name: name.into(),
            secure,
            domain: domain.map(Into::into),
            ..CookieSettings::default()
        };

        assert_eq!(
            settings("__Host-atid", Secure::Always, None).check(),
            Ok(())
        );
        for settings in [
            settings("__Host-atid", Secure::Auto, None),
            settings("__Host-atid", Secure::Always, Some("example.com")),
            settings("__Secure-atid", Secure::Never, None),
        ] {
            assert_eq!(settings.check(), Err(CookieError::Prefix));
        }
        assert_eq!(
            settings("a b", Secure::Auto, None).check(),
            Err(CookieError::Name)
        );
        assert_eq!(
            settings("a", Secure::Auto, Some("x; Secure")).check(),
            Err(CookieError::Domain)
        );
    }

    #[test]
    fn same_site_none_requires_a_secure_cookie() {
        let none = CookieSettings {
            same_site: SameSite::None,
            ..CookieSettings::default()
        };

        assert_eq!(none.check(), Err(CookieError::Insecure));
        assert_eq!(
            CookieSettings {
                secure: Secure::Always,
                ..none
            }
            .check(),
            Ok(())
        );
    }
}
