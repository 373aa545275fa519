//! The reasons for closing a socket, and the close frames for clients.

use actix_http::ws::{CloseCode, CloseReason, ProtocolError};

/// Why a socket ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ending {
    /// The server stops.
    #[error("the server stops")]
    GoingAway,
    /// The client closes it.
    #[error("closed by the client")]
    Closed(Option<CloseReason>),
    /// The connection was lost.
    #[error("the connection was lost")]
    Gone,
    /// The client does not read.
    #[error("the client does not read")]
    Stuck,
    /// The client shows no sign of life.
    #[error("the client was silent for too long")]
    Silent,
    /// The client did not authenticate in time.
    #[error("no authorization in time")]
    Late,
    /// The client has no valid key, or did not begin with one.
    #[error("the API key is wrong")]
    NotAdmitted,
    /// The first message is too large.
    #[error("the first message is too large")]
    TooLarge,
    /// The client does not speak the protocol.
    #[error("protocol violation: {0}")]
    Broken(#[from] ProtocolError),
}

impl Ending {
    /// The last frame (RFC 6455, section 7.4.1); none if nobody can read one.
    pub(super) fn frame(&self) -> Option<Option<CloseReason>> {
        let code = match self {
            Self::Gone | Self::Stuck => return None,
            Self::Closed(reason) => return Some(reason.as_ref().map(|reason| reason.code.into())),
            Self::GoingAway => CloseCode::Away,
            Self::Silent | Self::Late | Self::NotAdmitted => CloseCode::Policy,
            Self::TooLarge => CloseCode::Size,
            Self::Broken(_) => CloseCode::Protocol,
        };
        Some(Some((code, self.to_string()).into()))
    }
}
