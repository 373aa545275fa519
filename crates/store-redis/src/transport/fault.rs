use std::time::{Duration, Instant};

use redis::{ErrorKind, RedisError, ServerErrorKind};

use threadkeep_store::CallRejected;

#[derive(Debug)]
pub(crate) enum Fault {
    /// No connection could be made, and nothing was sent.
    Connect(RedisError),
    /// The server replied with an error, or the connection ended before a reply arrived.
    Call(RedisError),
    /// The deadline passed. The commands may have run.
    Timeout,
    /// The write was done, but a later command failed.
    Late(RedisError),
    /// The write was done, but too few replicas confirmed it before the timeout.
    Unconfirmed { confirmed: u64, wanted: u16 },
    /// The call was not sent. If failed connection attempts are the reason, `since` is the time of the first one.
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

    pub(super) fn is_an_answer(&self) -> bool {
        matches!(self, Self::Call(_)) && !self.is_of_the_connection()
    }

    /// Returns whether the server was out of memory and did nothing. Scripts do not fail midway, because Redis checks
    /// its memory only before their first write. Redis 6.2 wraps it in a script error.
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

    /// Returns whether the commands may have run, for example because a script failed midway.
    pub(crate) fn may_be_done(&self) -> bool {
        let script = Some(ErrorKind::Server(ServerErrorKind::ResponseError));
        match self {
            Self::Timeout | Self::Late(_) | Self::Unconfirmed { .. } => true,
            Self::Connect(_) | Self::Refused { .. } => false,
            Self::Call(_) if self.is_full() => false,
            Self::Call(_) => self.is_of_the_connection() || self.kind() == script,
        }
    }

    /// Returns whether the server does not have the script, and therefore did nothing.
    pub(super) fn is_missing_script(&self) -> bool {
        matches!(self, Self::Call(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
    }

    /// Returns whether the server currently does not accept writes, and therefore did nothing.
    pub(crate) fn is_read_only_error(&self) -> bool {
        matches!(
            self.kind(),
            Some(ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            ))
        )
    }

    /// Returns whether the call was refused for a reason that has lasted for at least `time`, or for an unknown time.
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
