//! Where a connection is made to.

use std::fmt;

use redis::RedisError;

use super::sentinel::Sentinels;
use crate::transport::{Endpoint, Multiplexer};

/// Where a connection is made to.
pub(crate) enum Origin {
    /// That server.
    Server(Box<Endpoint>),
    /// The server that the sentinels name, asked again for each connection.
    Sentinels(Sentinels),
}

impl Origin {
    /// Its name in logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server(endpoint) => endpoint.info().addr().to_string(),
            Self::Sentinels(sentinels) => sentinels.master().to_owned(),
        }
    }

    /// How the server is reached.
    pub(super) async fn locate(&self) -> Result<Endpoint, RedisError> {
        match self {
            Self::Server(endpoint) => Ok((**endpoint).clone()),
            Self::Sentinels(sentinels) => Ok(sentinels.find().await?.0),
        }
    }

    /// Makes a connection.
    pub(super) async fn connect(&self) -> Result<Multiplexer, RedisError> {
        match self {
            Self::Server(endpoint) => Multiplexer::connect(endpoint).await,
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
