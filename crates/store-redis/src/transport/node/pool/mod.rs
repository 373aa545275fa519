mod connector;
mod exclusive;

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use deadpool::managed::{self, Object, PoolConfig, PoolError, QueueMode};
use redis::{ErrorKind, RedisError, Value};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout, timeout_at};

use super::in_flight::InFlight;
use super::server::Server;
use crate::transport::Call;
use crate::transport::fault::Fault;
use crate::transport::limiter::{CallLimiter, CallLimits};
use connector::{Connector, FRESH};
use exclusive::ExclusiveConnection;
use threadkeep_store::CallRejected;

/// Maximum number of connections in a pool. If each write waits 1 ms for a replica, the 15 connections that serve calls
/// allow 15,000 writes per second.
const CONNECTIONS_MAX: usize = 16;
/// Maximum number of calls with a permit. One connection remains free for calls that need no permit: SCRIPT LOAD, and
/// CLUSTER SLOTS, which only one caller sends at a time.
const IN_FLIGHT_MAX: usize = CONNECTIONS_MAX - 1;
const UNUSED_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed connection attempt, and after a server has rejected writes, to prevent a storm of connections.
/// During the pause after a failed attempt, callers get the error of that attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// Exclusive connections to one server. The pool makes them one at a time, so that a hanging server gets only one
/// connection per call timeout, and a recovered server does not get a storm of connections.
#[derive(Debug)]
pub(super) struct Pool {
    connections: managed::Pool<Connector>,
    limiter: Arc<CallLimiter>,
    /// Locked while a connection is made or checked by PING.
    attempt: Arc<Mutex<LastFailure>>,
}

type LastFailure = Option<(Instant, RedisError)>;

impl Pool {
    pub(super) fn new(server: &Arc<Server>, bounds: CallLimits) -> Arc<Self> {
        let config = PoolConfig {
            // last in, first out, so that surplus connections become idle
            queue_mode: QueueMode::Lifo,
            ..PoolConfig::new(CONNECTIONS_MAX)
        };
        let connections = managed::Pool::builder(Connector::new(server))
            .config(config)
            .build()
            .expect("only timeouts of the pool need a runtime, and it has none");
        let bounds = CallLimits {
            in_flight: IN_FLIGHT_MAX,
            ..bounds
        };
        let pool = Arc::new(Self {
            connections,
            limiter: server.registry.limiter(bounds),
            attempt: Arc::default(),
        });
        tokio::spawn(Self::sweep(Arc::downgrade(&pool)));
        pool
    }

    /// Returns all replies, or the first error in a checked reply. Loads the scripts again if the server has lost them.
    pub(super) async fn call(self: &Arc<Self>, call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        let _permit = match call.is_limited {
            true => Some(self.limiter.acquire(call.deadline).await?),
            false => None,
        };
        let mut connection = self.check_out(call.deadline).await?;
        let in_flight = InFlight::new(self.server());
        let called = connection.call(call).await;
        in_flight.end(&called);
        called
    }

    pub(super) fn has_idle(&self) -> bool {
        self.last_use().is_some()
    }

    /// Returns a connection, or fails if none becomes available early enough for a call. Does not send the call.
    async fn check_out(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<ExclusiveConnection<'_>, Fault> {
        // uses one deadline for all steps, because the pool has a timeout for each step, and the timeouts would add up
        let by = CallLimiter::latest_permit_time(deadline);
        match timeout_at(by.into(), self.find()).await {
            Ok(found) => Ok(ExclusiveConnection::new(self, found?)),
            Err(_) => {
                self.server().breaker.unanswered();
                Err(CallRejected::Silent.into())
            }
        }
    }

    async fn find(self: &Arc<Self>) -> Result<Object<Connector>, Fault> {
        let is_fresh = |last_use: Instant| last_use.elapsed() < FRESH;
        if self.last_use().is_some_and(is_fresh) {
            return self.get().await.map_err(Fault::Connect);
        }
        let mut attempt = Arc::clone(&self.attempt).lock_owned().await;
        if let Some((at, error)) = &*attempt
            && at.elapsed() < PAUSE
        {
            return Err(Fault::Connect(error.clone()));
        }
        let pool = Arc::clone(self);
        // this task continues if the caller stops waiting, so that the next caller gets the connection or the error
        let connecting = tokio::spawn(async move {
            let result = timeout(pool.server().timeout, pool.get()).await;
            let result =
                result.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
            result.inspect_err(|error| {
                let now = Instant::now();
                pool.server().breaker.failed(error, now);
                *attempt = Some((now, error.clone()));
            })
        });
        let result = connecting.await.unwrap_or_else(|_| Err(unusable()));
        result.map_err(Fault::Connect)
    }

    async fn get(&self) -> Result<Object<Connector>, RedisError> {
        self.connections.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            _ => unusable(),
        })
    }

    /// Closes unusable connections. Returns when the idle connection that the pool offers next was last used.
    fn last_use(&self) -> Option<Instant> {
        let connector = self.connections.manager();
        let mut last_use = None;
        drop(self.connections.retain(|pooled, metrics| {
            let is_usable = connector.is_usable(pooled);
            if is_usable {
                last_use = Some(metrics.recycled.unwrap_or(metrics.created));
            }
            is_usable
        }));
        last_use
    }

    fn server(&self) -> &Server {
        &self.connections.manager().server
    }

    async fn sweep(pool: Weak<Self>) {
        loop {
            sleep(UNUSED_MAX).await;
            let Some(pool) = pool.upgrade() else {
                return;
            };
            let is_used = |_: &_, metrics: managed::Metrics| metrics.last_used() < UNUSED_MAX;
            drop(pool.connections.retain(is_used));
        }
    }
}

/// Returns the error for a pool that is closed or has timed out. Neither occurs, because the pools in this crate are
/// never closed and have no timeouts.
fn unusable() -> RedisError {
    (ErrorKind::Client, "the pool has no connection").into()
}
