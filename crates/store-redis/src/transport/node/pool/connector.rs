use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ConnectionInfo, ProtocolVersion, PushInfo, PushKind, RedisError, Value,
};
use tokio::time::{sleep_until, timeout};

use super::PAUSE;
use crate::transport::node::server::{Server, history_commands};
use crate::transport::without_password;

/// Time after the last use of a connection during which it does not need a PING.
pub(super) const FRESH: Duration = Duration::from_secs(1);

/// Makes connections with [`deadpool_redis::Manager`]. Skips the manager's UNWATCH and PING for connections used within
/// the last second, because no call uses WATCH, and PING costs a round trip.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) server: Arc<Server>,
    discards: AtomicU64,
    /// Earliest time of the next connection.
    not_before: Mutex<Option<Instant>>,
}

pub(super) struct Pooled {
    pub(super) connection: MultiplexedConnection,
    manager: deadpool_redis::Manager,
    has_ended: Arc<AtomicBool>,
    made: Instant,
    era: Era,
}

/// The numbers of discards and silences when a connection was made. If either changes, the connection is unusable.
type Era = (u64, u64);

impl Connector {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            discards: AtomicU64::new(0),
            not_before: Mutex::default(),
        }
    }

    pub(super) fn is_usable(&self, pooled: &Pooled) -> bool {
        pooled.era == self.era() && !pooled.has_ended.load(Ordering::Relaxed)
    }

    /// Discards a connection and all other connections from the same era, because they lead to the same server.
    pub(super) fn discard(&self, pooled: &Pooled) {
        let (discards, _) = pooled.era;
        let relaxed = Ordering::Relaxed;
        // one discard covers all failing connections from the same era
        let discarded = self
            .discards
            .compare_exchange(discards, discards + 1, relaxed, relaxed);
        discarded.ok();
    }

    /// Discards all connections from the same era, because the server rejects writes. Delays the next connection.
    pub(super) fn discard_read_only(&self, pooled: &Pooled) {
        *self.not_before() = Some(pooled.made + PAUSE);
        self.discard(pooled);
    }

    fn era(&self) -> Era {
        let discards = self.discards.load(Ordering::Relaxed);
        (discards, self.server.breaker.silences())
    }

    fn not_before(&self) -> MutexGuard<'_, Option<Instant>> {
        self.not_before
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manager for Connector {
    type Type = Pooled;
    type Error = RedisError;

    /// Connects to the current server. Sentinels may name a different server each time.
    async fn create(&self) -> Result<Pooled, RedisError> {
        let not_before = self.not_before().take();
        if let Some(not_before) = not_before {
            sleep_until(not_before.into()).await;
        }
        let (made, era) = (Instant::now(), self.era());
        let endpoint = self.server.origin.locate().await?;
        let has_ended = Arc::default();
        let manager = manager(endpoint.for_library().await?, Arc::clone(&has_ended))?;
        let connection = manager.create().await.map_err(without_password);
        let mut connection = connection.map_err(|error| endpoint.explain(error))?;
        let mut pipeline = redis::pipe();
        for command in &history_commands() {
            pipeline.add_command(command.into());
        }
        let history: Vec<Value> = pipeline.query_async(&mut connection).await?;
        self.server.connected(&history);
        self.server.breaker.reached();
        Ok(Pooled {
            connection,
            manager,
            has_ended,
            made,
            era,
        })
    }

    async fn recycle(&self, pooled: &mut Pooled, metrics: &Metrics) -> RecycleResult<RedisError> {
        if !self.is_usable(pooled) {
            return Err(RecycleError::message("the connection is broken"));
        }
        if metrics.last_used() < FRESH {
            return Ok(());
        }
        let checked = pooled.manager.recycle(&mut pooled.connection, metrics);
        let limit = self.server.timeout / 8;
        let checked = timeout(limit, checked).await;
        checked
            .unwrap_or_else(|_| Err(RecycleError::message("the server does not answer")))
            .inspect_err(|_| self.discard(pooled))
    }
}

fn manager(
    info: ConnectionInfo,
    has_ended: Arc<AtomicBool>,
) -> Result<deadpool_redis::Manager, RedisError> {
    let settings = info.redis_settings().clone();
    let settings = settings
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("threadkeep", env!("CARGO_PKG_VERSION"));
    // disables the default time limits, such as half a second for a reply, because callers set their own limits
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                has_ended.store(true, Ordering::Relaxed);
            }
            Ok::<_, ()>(())
        });
    deadpool_redis::Manager::new_with_config(info.set_redis_settings(settings), config)
}

/// Omits the password.
impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled").finish_non_exhaustive()
    }
}
