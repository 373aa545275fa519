//! Why a call to Redis failed, and whether it may have run.

use std::time::{Duration, Instant};

use redis::{ErrorKind, RedisError, ServerErrorKind};

use threadkeep_store::CallRejected;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No connection could be made. Nothing was sent.
    Connect(RedisError),
    /// The server answered with an error, or the connection ended before it answered.
    Call(RedisError),
    /// The deadline has passed.
    Timeout,
    /// The write was done, and a command after it failed.
    Late(RedisError),
    /// The write was done, and too few replicas have confirmed it in time.
    Unconfirmed { confirmed: u64, wanted: u16 },
    /// The call was not sent. `since` is when connections began to fail, if that is why.
    Refused {
        why: CallRejected,
        since: Option<Instant>,
    },
}

impl Fault {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Connect(error) | Self::Call(error) => Some(error.kind()),
            Self::Timeout | Self::Late(_) | Self::Unconfirmed { .. } | Self::Refused { .. } => None,
        }
    }

    pub(crate) fn is_of_the_connection(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::Io | ErrorKind::Parse))
    }

    /// Whether the server answered.
    pub(super) fn is_an_answer(&self) -> bool {
        matches!(self, Self::Call(_)) && !self.is_of_the_connection()
    }

    /// Whether the server had no memory left and has done nothing: it checks only before the first write of a script.
    /// Redis 6.2 wraps that reply into an error of the script, without a code of its own.
    pub(crate) fn is_full(&self) -> bool {
        let Self::Call(error) = self else {
            return false;
        };
        let is_wrapped = || {
            let detail = error.detail();
            detail.is_some_and(|detail| detail.contains("-OOM command not allowed"))
        };
        error.code() == Some("OOM") || error.code() == Some("ERR") && is_wrapped()
    }

    /// Whether the server may have executed the commands: the connection ended before a reply, or a script failed
    /// midway.
    pub(crate) fn may_be_done(&self) -> bool {
        let script = Some(ErrorKind::Server(ServerErrorKind::ResponseError));
        match self {
            Self::Timeout | Self::Late(_) | Self::Unconfirmed { .. } => true,
            Self::Connect(_) | Self::Refused { .. } => false,
            Self::Call(_) if self.is_full() => false,
            Self::Call(_) => self.is_of_the_connection() || self.kind() == script,
        }
    }

    /// Whether the server has lost a script. It has done nothing.
    pub(super) fn is_missing_script(&self) -> bool {
        matches!(self, Self::Call(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
    }

    /// Whether the server takes no writes, or not yet. It has done nothing.
    pub(crate) fn is_of_the_role(&self) -> bool {
        matches!(
            self.kind(),
            Some(ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            ))
        )
    }

    /// Whether the call was refused for a reason that has lasted for at least that time.
    pub(crate) fn lasts(&self, time: Duration) -> bool {
        match self {
            Self::Refused { since, .. } => since.is_none_or(|since| since.elapsed() >= time),
            _ => false,
        }
    }
}

impl From<CallRejected> for Fault {
    fn from(why: CallRejected) -> Self {
        Self::Refused { why, since: None }
    }
}
