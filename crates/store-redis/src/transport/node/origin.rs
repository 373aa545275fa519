use std::fmt;

use redis::RedisError;

use super::sentinel::Sentinels;
use crate::transport::{Endpoint, Multiplexer};

pub(crate) enum Origin {
    Server(Box<Endpoint>),
    /// The server that the sentinels name. The sentinels are asked again before each new connection.
    Sentinels(Sentinels),
}

impl Origin {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server(endpoint) => endpoint.info().addr().to_string(),
            Self::Sentinels(sentinels) => sentinels.master().to_owned(),
        }
    }

    pub(super) async fn locate(&self) -> Result<Endpoint, RedisError> {
        match self {
            Self::Server(endpoint) => Ok((**endpoint).clone()),
            Self::Sentinels(sentinels) => Ok(sentinels.find().await?.0),
        }
    }

    pub(super) async fn connect(&self) -> Result<Multiplexer, RedisError> {
        match self {
            Self::Server(endpoint) => Multiplexer::connect(endpoint).await,
            Self::Sentinels(sentinels) => Ok(sentinels.find().await?.1),
        }
    }
}

/// Omits the password.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").finish_non_exhaustive()
    }
}
