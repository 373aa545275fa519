//! Where a connection is made to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redis::aio::MultiplexedConnection;
use redis::{Client, ConnectionInfo, RedisError};

use super::connecting::connect;
use super::sentinel::Sentinels;

/// Where a connection is made to.
pub(in crate::store::redis) enum Origin {
    /// That server.
    Server(Box<Client>),
    /// The server that the sentinels name, asked anew for each connection.
    Sentinels(Sentinels),
}

impl Origin {
    pub(in crate::store::redis) fn server(info: ConnectionInfo) -> Result<Self, RedisError> {
        Ok(Self::Server(Box::new(Client::open(info)?)))
    }

    /// Makes a connection. What is lent tells from then on whether it has ended.
    pub(super) async fn connect(
        &self,
        broken: Arc<AtomicBool>,
    ) -> Result<MultiplexedConnection, RedisError> {
        match self {
            Self::Server(client) => connect(client, &broken).await,
            Self::Sentinels(sentinels) => sentinels.connect(&broken).await,
        }
    }
}

/// What a connection is made of holds a password.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").finish_non_exhaustive()
    }
}
