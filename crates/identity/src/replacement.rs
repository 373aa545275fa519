//! The cookie that prevents a late response from restoring an old id.
//!
//! A response that replaces the browser's id (a rotation, or "new chat") may arrive before the response to an earlier
//! request. The late response then sets the old id again. Therefore, the new id is also sent in a second cookie, with
//! the ids that the new id replaces. The second cookie lives as long as the first, because the browser's next request
//! may come at any time. If the browser sends a replaced id, the server uses the new id and resends the first cookie.

use actix_web::http::header::{HeaderMap, HeaderValue};

use super::{Attributes, Caller, CookieSettings, cookie_values, verify, write_value};
use threadkeep_domain::{KeyRing, ThreadId};

/// Maximum number of replaced ids in a cookie. The latest ids come first, and older ids are dropped.
const REPLACED_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct ReplacementCookie {
    name: String,
    attributes: Attributes,
}

struct Replacement<'a> {
    id: &'a str,
    signed: &'a str,
    /// Unsigned ids. They grant no access to a thread, and only determine whether `signed` applies.
    replaced: Vec<&'a str>,
}

impl ReplacementCookie {
    pub(super) fn new(settings: &CookieSettings) -> Self {
        Self {
            name: format!("{}_next", settings.name),
            attributes: Attributes::new(settings),
        }
    }

    /// Returns the caller whose id replaces `id`.
    pub(super) fn next_of(
        &self,
        id: &ThreadId,
        headers: &HeaderMap,
        ring: &KeyRing,
    ) -> Option<Caller> {
        self.all(headers)
            .filter(|replacement| replacement.replaced.contains(&id.as_str()))
            .find_map(|replacement| replacement.verify(ring))
    }

    pub(super) fn replaced_by<'a>(
        &self,
        id: &ThreadId,
        headers: &'a HeaderMap,
        ring: &KeyRing,
    ) -> Vec<&'a str> {
        self.all(headers)
            .filter(|replacement| replacement.id == id.as_str())
            .find(|replacement| replacement.verify(ring).is_some())
            .map_or_else(Vec::new, |replacement| replacement.replaced)
    }

    fn all<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = Replacement<'a>> {
        cookie_values(&self.name, headers).filter_map(Replacement::read)
    }

    pub(super) fn set(
        &self,
        signed: &HeaderValue,
        replaced: &ThreadId,
        earlier: &[&str],
        is_https: bool,
    ) -> HeaderValue {
        let mut text = format!("{}=", self.name).into_bytes();
        write_value(&mut text, signed.as_bytes());
        let replaced = std::iter::once(replaced.as_str());
        for id in replaced.chain(earlier.iter().copied()).take(REPLACED_MAX) {
            text.push(b'.');
            text.extend_from_slice(id.as_bytes());
        }
        text.extend_from_slice(self.attributes.of(is_https).as_bytes());
        HeaderValue::try_from(text).expect("name and domain were checked, the rest is ASCII")
    }
}

impl<'a> Replacement<'a> {
    fn read(value: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let mut parts = text.split('.');
        let (id, signature) = (parts.next()?, parts.next()?);
        let replaced: Vec<_> = parts.collect();
        (replaced.len() <= REPLACED_MAX).then_some(Self {
            id,
            signed: &text[..id.len() + 1 + signature.len()],
            replaced,
        })
    }

    fn verify(&self, ring: &KeyRing) -> Option<Caller> {
        verify(self.signed.as_bytes(), ring).ok()
    }
}
