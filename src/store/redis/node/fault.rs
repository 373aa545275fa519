//! What can go wrong with a call.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// What failed: reaching the server, or a call that it may have run, or the time, or what was to come
/// after a write that was done.
#[derive(Debug)]
pub(in crate::store::redis) enum Fault {
    Connect(RedisError),
    Call(RedisError),
    Timeout,
    /// It was written, and what came after it failed.
    Late(RedisError),
    /// It was written, and too few replicas have said in time that they have it.
    Unconfirmed {
        confirmed: u64,
        wanted: u16,
    },
}

impl Fault {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Connect(error) | Self::Call(error) => Some(error.kind()),
            Self::Timeout | Self::Late(_) | Self::Unconfirmed { .. } => None,
        }
    }

    pub(in crate::store::redis) fn is_of_the_connection(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::Io | ErrorKind::Parse))
    }

    /// Whether the server may have done what was sent: the connection ended before it said so, or
    /// a script failed on its way.
    pub(in crate::store::redis) fn may_be_done(&self) -> bool {
        let script = Some(ErrorKind::Server(ServerErrorKind::ResponseError));
        match self {
            Self::Timeout | Self::Late(_) | Self::Unconfirmed { .. } => true,
            Self::Connect(_) => false,
            Self::Call(_) => self.is_of_the_connection() || self.kind() == script,
        }
    }

    /// The server is not, or not yet, the one that takes writes. It has done nothing.
    pub(in crate::store::redis) fn is_of_the_role(&self) -> bool {
        matches!(
            self.kind(),
            Some(ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            ))
        )
    }
}
