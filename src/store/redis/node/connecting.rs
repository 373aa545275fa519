//! A connection as the store has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, RedisError};

/// A connection for the calls of the store. The library is told not to time out or retry: both are
/// decided here.
pub(super) async fn connect(
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
pub(super) fn unbounded() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
}
