//! The thread of a request.

use std::sync::Arc;

use actix_web::http::header::HeaderValue;

use super::cookie::RejectedCookie;
use threadkeep_domain::ThreadId;

/// The thread of a request, and how it was found.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The plain id.
    pub id: ThreadId,
    /// How it was found.
    pub source: Source,
    /// The name of the key that signed it, when it came signed.
    pub key_name: Option<Arc<str>>,
    /// Why its cookies were ignored, if a new id takes their place.
    pub rejected_cookie: Option<RejectedCookie>,
    /// Whether a page of another origin writes without any cookie: on its first visit, or each time if the browser
    /// withholds the cookie.
    pub foreign_without_cookie: bool,
    /// The id that this one replaces in the browser.
    pub(super) replaced: Option<ThreadId>,
    /// The signed id in the form of the header, when it came just as it would be sent.
    pub(super) signed: Option<HeaderValue>,
}

/// How the thread of a request was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The header `x-thread-id`.
    Header,
    /// The cookie.
    Cookie,
    /// A new id, since there was neither.
    Minted,
    /// A provider.
    Provider,
    /// An api key, with the id in the path.
    ApiKey,
}

impl Source {
    /// The caller's thread after that one has ended; none if a provider will name the same thread again, which then
    /// has to begin a new life at once.
    #[must_use]
    pub fn successor(self, of: ThreadId) -> Option<Caller> {
        let fresh = || Caller::of(ThreadId::random(), Self::Minted).replacing(of);
        (self != Self::Provider).then(fresh)
    }

    /// The name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Minted => "minted",
            Self::Provider => "provider",
            Self::ApiKey => "api_key",
        }
    }
}

impl Caller {
    /// A thread found that way, not signed yet.
    #[must_use]
    pub fn of(id: ThreadId, source: Source) -> Self {
        Self {
            id,
            source,
            key_name: None,
            rejected_cookie: None,
            foreign_without_cookie: false,
            replaced: None,
            signed: None,
        }
    }

    /// Returns a copy whose id replaces `id` in the browser.
    #[must_use]
    pub fn replacing(self, id: ThreadId) -> Self {
        Self {
            replaced: Some(id),
            ..self
        }
    }

    /// The same, shown to be so by a key of that name.
    #[must_use]
    pub fn with_key(self, name: Arc<str>) -> Self {
        Self {
            key_name: Some(name),
            ..self
        }
    }
}
