//! The cookie that keeps a late response from bringing an old id back.
//!
//! A response that replaces the id of a browser (a rotation, or "new chat") may overtake one to an earlier request, which then
//! sets the old id again. So the new id also comes in a second cookie, with the ids that it replaces.
//! It lives as long as the first one: nobody knows when the browser sends its next request.
//! If a browser sends one of these, the server uses the new id, and the response sets the cookie of the id again.

use actix_web::http::header::{HeaderMap, HeaderValue};

use super::caller::Caller;
use super::cookie::{CookieSettings, Fault, named, verify, write_value};
use crate::domain::{KeyRing, ThreadId};

/// Replaced ids in one cookie, the latest first.
const REPLACED_MAX: usize = 4;

/// The cookie, with its common parts.
#[derive(Debug)]
pub(super) struct ReplacementCookie {
    name: String,
    http_attributes: String,
    https_attributes: String,
}

/// The content of the cookie.
pub(super) struct Replacement<'a> {
    pub(super) caller: Caller,
    /// Unsigned ids. They open no thread, and only decide whether `caller` applies.
    replaced: Vec<&'a str>,
}

impl ReplacementCookie {
    pub(super) fn new(settings: &CookieSettings) -> Self {
        let settings = CookieSettings {
            name: format!("{}_next", settings.name),
            ..settings.clone()
        };
        Self {
            http_attributes: settings.attributes(false),
            https_attributes: settings.attributes(true),
            name: settings.name,
        }
    }

    /// The replacement in the first such cookie that verifies.
    pub(super) fn find<'a>(
        &self,
        headers: &'a HeaderMap,
        ring: &KeyRing,
    ) -> Option<Replacement<'a>> {
        named(&self.name, headers).find_map(|value| {
            let mut ids = std::str::from_utf8(value).ok()?.split('.');
            let id_bytes = ids.next()?.len() + 1 + ids.next()?.len();
            let replaced: Vec<_> = ids.collect();
            let verified: Result<Caller, Fault> = verify(&value[..id_bytes], ring);
            let is_short = replaced.len() <= REPLACED_MAX;
            let caller = verified.ok().filter(|_| is_short)?;
            Some(Replacement { caller, replaced })
        })
    }

    /// The cookie for a signed id in the form of the header. It lists `replaced`, and the ids that `replaced` itself replaced.
    pub(super) fn set(
        &self,
        signed: &HeaderValue,
        replaced: &ThreadId,
        before: Option<&Replacement<'_>>,
        is_https: bool,
    ) -> HeaderValue {
        let mut text = format!("{}=", self.name).into_bytes();
        write_value(&mut text, signed.as_bytes());
        let before = before.filter(|before| before.caller.id == *replaced);
        let earlier = before
            .into_iter()
            .flat_map(|before| before.replaced.iter().copied());
        for id in std::iter::once(replaced.as_str())
            .chain(earlier)
            .take(REPLACED_MAX)
        {
            text.push(b'.');
            text.extend_from_slice(id.as_bytes());
        }
        let attributes = match is_https {
            true => &self.https_attributes,
            false => &self.http_attributes,
        };
        text.extend_from_slice(attributes.as_bytes());
        HeaderValue::try_from(text).expect("name and domain were checked, the rest is ASCII")
    }
}

impl Replacement<'_> {
    /// Whether it counts instead of an id.
    pub(super) fn replaces(&self, id: &ThreadId) -> bool {
        self.replaced.contains(&id.as_str())
    }
}
