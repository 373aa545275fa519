//! Where a connection is made to.

use std::fmt;

use redis::{ConnectionInfo, RedisError};

use super::sentinel::Sentinels;
use crate::store::redis::transport::wire::Multiplexer;

/// Where a connection is made to.
pub(crate) enum Origin {
    /// That server.
    Server(Box<ConnectionInfo>),
    /// The server that the sentinels name, asked again for each connection.
    Sentinels(Sentinels),
}

impl Origin {
    /// Its name in logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server(info) => info.addr().to_string(),
            Self::Sentinels(sentinels) => sentinels.master().to_owned(),
        }
    }

    /// How the server is reached.
    pub(super) async fn locate(&self) -> Result<ConnectionInfo, RedisError> {
        match self {
            Self::Server(info) => Ok((**info).clone()),
            Self::Sentinels(sentinels) => Ok(sentinels.find().await?.0),
        }
    }

    /// Makes a connection.
    pub(super) async fn connect(&self) -> Result<Multiplexer, RedisError> {
        match self {
            Self::Server(info) => Multiplexer::connect(info).await,
            Self::Sentinels(sentinels) => Ok(sentinels.find().await?.1),
        }
    }
}

/// The parts of a connection contain a password.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").finish_non_exhaustive()
    }
}
