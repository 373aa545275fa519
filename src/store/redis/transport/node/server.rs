//! State shared by all connections to a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{ConnectionInfo, RedisError};

use super::origin::Origin;
use crate::store::redis::transport::breaker::Breaker;
use crate::store::redis::transport::registry::ConnectionRegistry;

/// A server: how it is reached, and whether it is there.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) origin: Origin,
    pub(super) breaker: Breaker,
    pub(super) registry: Arc<ConnectionRegistry>,
    /// How long a call may take, and a probe.
    pub(super) timeout: Duration,
}

impl Server {
    pub(crate) fn new(
        origin: Origin,
        timeout: Duration,
        registry: Arc<ConnectionRegistry>,
    ) -> Self {
        Self {
            breaker: Breaker::new(origin.name(), Arc::clone(&registry), Instant::now()),
            registry,
            origin,
            timeout,
        }
    }

    /// Where it is now.
    pub(crate) async fn locate(&self) -> Result<ConnectionInfo, RedisError> {
        self.origin.locate().await
    }

    /// Whether calls to it are refused.
    pub(crate) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }
}
