//! Calls that are not requests: they get connections of their own, so that neither waits for the
//! other.

use std::time::Duration;

use deadpool_redis::{Manager, Pool, PoolError, Runtime};
use redis::{AsyncConnectionConfig, Cmd, Value};

use crate::store::{StoreError, millis};

const CONNECTIONS: usize = 2;

/// A small pool of connections.
#[derive(Clone)]
pub(super) struct Administration {
    pool: Pool,
    timeout: Duration,
}

impl Administration {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, StoreError> {
        // the time of a call is bounded here, as a whole
        let unbounded = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let manager = Manager::new_with_config(url, unbounded)
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { pool, timeout })
    }

    /// Calls a command.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn call(&self, cmd: Cmd) -> Result<Value, StoreError> {
        let call = async {
            let mut connection = self.pool.get().await?;
            Ok::<Value, PoolError>(cmd.query_async(&mut connection).await?)
        };
        match tokio::time::timeout(self.timeout, call).await {
            Ok(result) => result.map_err(|error| StoreError::Unavailable(error.into())),
            Err(_) => Err(StoreError::Timeout(millis(self.timeout))),
        }
    }
}
