#[derive(Debug)]
pub(crate) enum NoAnswer {
    NotConnected,
    TimedOut,
    ConnectionLost,
    /// A status that means that the service is unavailable.
    Status(u16),
}

impl NoAnswer {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotConnected => "no connection",
            Self::TimedOut => "time-out",
            Self::ConnectionLost => "connection lost",
            Self::Status(429) => "429",
            Self::Status(502) => "502",
            Self::Status(504) => "504",
            Self::Status(_) => "503",
        }
    }

    /// Returns whether the service may have executed the request.
    pub(crate) fn may_be_done(&self) -> bool {
        match self {
            // the service sends 429 before it executes anything
            Self::NotConnected | Self::Status(429) => false,
            Self::TimedOut | Self::ConnectionLost | Self::Status(_) => true,
        }
    }
}

impl From<reqwest::Error> for NoAnswer {
    fn from(error: reqwest::Error) -> Self {
        if error.is_connect() {
            Self::NotConnected
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::ConnectionLost
        }
    }
}
