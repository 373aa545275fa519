//! Where a connection is made to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, PushInfo, PushKind, RedisError};

use crate::store::redis::sentinel::Sentinels;

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

/// A connection for the calls of the store. The library is told not to time out or retry: both are
/// decided here.
pub(in crate::store::redis) async fn connect(
    client: &Client,
    broken: &Arc<AtomicBool>,
) -> Result<MultiplexedConnection, RedisError> {
    let broken = Arc::clone(broken);
    // the server's end of the connection is noticed even when nothing is being asked
    let watch = move |push: PushInfo| {
        if push.kind == PushKind::Disconnection {
            broken.store(true, Ordering::Relaxed);
        }
        Ok::<_, RedisError>(())
    };
    let config = unbounded().set_push_sender(watch);
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// Without the time-outs of the library.
pub(in crate::store::redis) fn unbounded() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
}
