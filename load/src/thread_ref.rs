use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) enum ThreadRef {
    /// The client has a cookie. A cookie is valid for only one host, so all requests are sent to the same replica.
    Cookie {
        host: Arc<str>,
        /// The id from the first answer that contained one.
        received: Option<SignedId>,
    },
    Signed(SignedId),
    ById(Arc<str>),
}

/// The id of a thread, and the signed id that gives access to the thread.
#[derive(Debug, Clone)]
pub(crate) struct SignedId {
    pub(crate) id: Arc<str>,
    pub(crate) signed: Arc<str>,
}

impl ThreadRef {
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

    /// Returns the host of the replica that all requests must be sent to, or `None` if any replica can handle them.
    pub(crate) fn host(&self) -> Option<Arc<str>> {
        match self {
            Self::Cookie { host, .. } => Some(Arc::clone(host)),
            Self::Signed(_) | Self::ById(_) => None,
        }
    }

    pub(crate) fn about(&self) -> Option<Arc<str>> {
        match self {
            Self::Cookie { received, .. } => Some(Arc::clone(&received.as_ref()?.id)),
            Self::Signed(SignedId { id, .. }) | Self::ById(id) => Some(Arc::clone(id)),
        }
    }

    /// Returns a form that every replica accepts.
    pub(crate) fn for_any_replica(&self) -> Self {
        match self {
            Self::Cookie {
                received: Some(id), ..
            } => Self::Signed(id.clone()),
            other => other.clone(),
        }
    }

    /// Returns whether every answer names the thread.
    pub(crate) fn is_named_in_answers(&self) -> bool {
        !matches!(self, Self::ById(_))
    }
}
