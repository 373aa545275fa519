use actix_http::ws::{CloseCode, CloseReason, ProtocolError};

#[derive(Debug, thiserror::Error)]
pub(super) enum Ending {
    #[error("the server stops")]
    GoingAway,
    #[error("closed by the client")]
    Closed(Option<CloseReason>),
    #[error("the connection was lost")]
    Lost,
    #[error("the client does not read")]
    Stuck,
    #[error("the client was silent for too long")]
    Silent,
    #[error("no authorization in time")]
    Late,
    /// The first message contains no valid key.
    #[error("the API key is wrong")]
    NotAdmitted,
    #[error("the first message is too large")]
    TooLarge,
    #[error("protocol violation: {0}")]
    Broken(#[from] ProtocolError),
}

impl Ending {
    /// Returns the close frame (RFC 6455, section 7.4.1), or `None` if the client can no longer read it.
    pub(super) fn frame(&self) -> Option<Option<CloseReason>> {
        let code = match self {
            Self::Lost | Self::Stuck => return None,
            Self::Closed(reason) => return Some(reason.as_ref().map(|reason| reason.code.into())),
            Self::GoingAway => CloseCode::Away,
            Self::Silent | Self::Late | Self::NotAdmitted => CloseCode::Policy,
            Self::TooLarge => CloseCode::Size,
            Self::Broken(_) => CloseCode::Protocol,
        };
        Some(Some((code, self.to_string()).into()))
    }
}
