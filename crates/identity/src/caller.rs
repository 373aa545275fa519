use std::sync::Arc;

use actix_web::http::header::HeaderValue;

use super::cookie::RejectedCookie;
use threadkeep_domain::ThreadId;

/// The thread of a request, and how it was found.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Thread id without signature.
    pub id: ThreadId,
    /// How the thread was found.
    pub source: Source,
    /// Name of the signing key, if the id was signed.
    pub key_name: Option<Arc<str>>,
    /// Why the request's cookies were rejected, if they were rejected and a new id was generated.
    pub rejected_cookie: Option<RejectedCookie>,
    /// True if the request is a write that a page from another origin sent without cookies, as on a first visit.
    pub foreign_without_cookie: bool,
    pub(super) replaced: Option<ThreadId>,
    /// The client's signed id, in the format of `x-thread-id`. `None` if the response must set a new value.
    pub(super) signed: Option<HeaderValue>,
}

/// How a request's thread was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// In the header `x-thread-id`.
    Header,
    /// In the cookie.
    Cookie,
    /// A new id, because the request named no thread.
    Minted,
    /// Through a [`ThreadIdProvider`](crate::ThreadIdProvider).
    Provider,
    /// In the path, with an API key.
    ApiKey,
}

impl Source {
    /// Returns a caller with a new thread that replaces the thread `of`. Returns `None` for [`Self::Provider`], because
    /// a provider always names the same thread for a caller.
    #[must_use]
    pub fn successor(self, of: ThreadId) -> Option<Caller> {
        let fresh = || Caller::of(ThreadId::random(), Self::Minted).replacing(of);
        (self != Self::Provider).then(fresh)
    }

    /// Returns the label in metrics.
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
    /// Creates a caller without a signature.
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

    /// Returns a copy that records `name` as the signing key that verified the id.
    #[must_use]
    pub fn with_key(self, name: Arc<str>) -> Self {
        Self {
            key_name: Some(name),
            ..self
        }
    }
}
