//! How a thread is named.

use std::sync::Arc;

/// A thread as its user names it.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// By a cookie that the client keeps; the replica stays the same one, for a cookie belongs to
    /// its host.
    Cookie {
        host: Arc<str>,
        /// Once an answer had it.
        told: Option<SignedId>,
    },
    /// By its signed id.
    Signed(SignedId),
    /// By its plain id, in a run that has an API key.
    ById(Arc<str>),
}

/// A thread's id, and the text that opens it.
#[derive(Debug, Clone)]
pub(crate) struct SignedId {
    pub(crate) id: Arc<str>,
    pub(crate) signed: Arc<str>,
}

impl Place {
    pub(crate) fn path(&self, rest: &str) -> String {
        match self {
            Self::Cookie { .. } | Self::Signed(_) => format!("/v1/threads/current{rest}"),
            Self::ById(id) => format!("/v1/threads/{id}{rest}"),
        }
    }

    pub(crate) fn header(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Signed(id) => Some(("x-thread-id", id.signed.to_string())),
            Self::Cookie { .. } | Self::ById(_) => None,
        }
    }

    /// The replica, where it has to be the same one.
    pub(crate) fn host(&self) -> Option<Arc<str>> {
        match self {
            Self::Cookie { host, .. } => Some(Arc::clone(host)),
            Self::Signed(_) | Self::ById(_) => None,
        }
    }

    /// The plain id, if it is known.
    pub(crate) fn about(&self) -> Option<Arc<str>> {
        match self {
            Self::Cookie { told, .. } => Some(Arc::clone(&told.as_ref()?.id)),
            Self::Signed(SignedId { id, .. }) | Self::ById(id) => Some(Arc::clone(id)),
        }
    }

    /// The same thread, as any replica knows it.
    pub(crate) fn anywhere(&self) -> Self {
        match self {
            Self::Cookie { told: Some(id), .. } => Self::Signed(id.clone()),
            other => other.clone(),
        }
    }

    /// Whether each answer says which thread it is about.
    pub(crate) fn is_told(&self) -> bool {
        !matches!(self, Self::ById(_))
    }
}
