use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::{ErrorKind, RedisError, Value};
use tokio::runtime::Handle;
use tokio::time::{sleep_until, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::server::{Server, history_commands};
use crate::scripts;
use crate::transport::fault::Fault;
use crate::transport::{Call, Multiplexer, values};
use threadkeep_store::millis;

/// Pause after a failed connection attempt. During the pause, calls fail with that attempt's error. This prevents a
/// storm of connections to a server that is unavailable or rejects writes.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum idle time of a connection before it is replaced.
const IDLE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Connection {
    /// The connection attempt or its result, which all callers share. The attempt continues if a caller stops waiting,
    /// so that a hanging Redis gets one connection instead of one per request.
    connection: Shared<BoxFuture<'static, Result<Multiplexer, RedisError>>>,
    is_given_up: AtomicBool,
    /// The server rejects writes.
    rejects_writes: AtomicBool,
    made: Instant,
    /// Time of the last use, in milliseconds since `made`.
    used_ms: AtomicU64,
    silences: u64,
}

impl Connection {
    /// Prepares a connection. The first call opens the connection, on `runtime` or, if `None`, on the caller's runtime.
    pub(super) fn new(
        server: &Arc<Server>,
        after: Option<&Self>,
        runtime: Option<&Handle>,
    ) -> Self {
        let made = after.map_or_else(Instant::now, Self::next_attempt);
        let connecting = connect(Arc::clone(server), made);
        let connecting = match runtime {
            None => connecting.boxed(),
            Some(runtime) => on(runtime.clone(), connecting).boxed(),
        };
        Self {
            connection: connecting.shared(),
            is_given_up: AtomicBool::new(false),
            rejects_writes: AtomicBool::new(false),
            made,
            used_ms: AtomicU64::new(0),
            silences: server.breaker.silences(),
        }
    }

    /// Returns the time at which a replacement may be made.
    fn next_attempt(&self) -> Instant {
        let now = Instant::now();
        match self.rejects_writes.load(Ordering::Relaxed) {
            true => now.max(self.made + RETRY_PAUSE),
            false => now,
        }
    }

    /// Returns whether calls can use the connection. A failed connection remains usable for a short time, so that calls
    /// fail with its error. A connection that was idle for a long time is not usable, because its peer may be gone.
    pub(super) fn is_usable(&self) -> bool {
        let is_usable = match self.connection.peek() {
            None => true,
            Some(Ok(wire)) => !wire.has_ended() && !self.is_idle(Instant::now()),
            Some(Err(_)) => self.made.elapsed() < RETRY_PAUSE,
        };
        is_usable && !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Returns whether the connection is usable and was opened after the server last stopped responding. The peer of an
    /// older connection may have gone away in the meantime.
    pub(super) fn is_trusted(&self, server: &Server) -> bool {
        self.silences == server.breaker.silences() && self.is_usable()
    }

    pub(super) fn is_made(&self) -> bool {
        self.is_usable() && matches!(self.connection.peek(), Some(Ok(_)))
    }

    fn is_idle(&self, now: Instant) -> bool {
        let used = Duration::from_millis(self.used_ms.load(Ordering::Relaxed));
        let age = now.saturating_duration_since(self.made);
        age.saturating_sub(used) >= IDLE_MAX
    }

    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Returns raw replies, including errors.
    pub(super) async fn exchange(&self, call: &Call<'_>) -> Result<Bytes, Fault> {
        let made = match self.connection.peek() {
            Some(made) => made.clone(),
            // boxed, because this happens once per connection
            None => Box::pin(timeout_at(call.deadline.into(), self.connection.clone()))
                .await
                .map_err(|_| Fault::Timeout)?,
        };
        let multiplexer = made.map_err(Fault::Connect)?;
        let used_ms = millis(self.made.elapsed());
        self.used_ms.store(used_ms, Ordering::Relaxed);
        let replies = multiplexer.exchange(call.commands, Some(call.deadline));
        replies.await.inspect_err(|fault| self.observe(fault))
    }

    pub(super) fn read(&self, replies: &[u8], call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        let replies = values(replies, call.commands.len());
        let checked = replies.and_then(|replies| call.check(replies));
        checked
            .map_err(Fault::Call)
            .inspect_err(|fault| self.observe(fault))
    }

    /// Abandons the connection if `fault` shows that the connection has ended, or that the server rejects writes.
    fn observe(&self, fault: &Fault) {
        let rejects_writes = fault.is_read_only_error();
        if rejects_writes {
            self.rejects_writes.store(true, Ordering::Relaxed);
        }
        if rejects_writes || fault.is_of_the_connection() {
            self.give_up();
        }
    }
}

/// Connects on `runtime`. Stops if all callers give up.
async fn on(
    runtime: Handle,
    connecting: impl Future<Output = Result<Multiplexer, RedisError>> + Send + 'static,
) -> Result<Multiplexer, RedisError> {
    let made = AbortOnDropHandle::new(runtime.spawn(connecting)).await;
    made.unwrap_or_else(|_| {
        Err((ErrorKind::Client, "the thread of the connection has ended").into())
    })
}

/// Connects, but not before `at`, and reports the result to the breaker.
async fn connect(server: Arc<Server>, at: Instant) -> Result<Multiplexer, RedisError> {
    if at > Instant::now() {
        sleep_until(at.into()).await;
    }
    let made = connect_ready(&server).await;
    match &made {
        Ok(_) => server.breaker.reached(),
        Err(error) => server.breaker.failed(error, Instant::now()),
    }
    made
}

async fn connect_ready(server: &Server) -> Result<Multiplexer, RedisError> {
    let connection = server.origin.connect().await?;
    server.connected(&connection.call(&history_commands()).await?);
    for loaded in connection.call(scripts::load_all()).await? {
        loaded.extract_error()?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[test]
    fn a_connection_is_idle_a_minute_after_its_last_use() {
        let made = Instant::now();
        let connection = Connection {
            connection: pending().boxed().shared(),
            is_given_up: AtomicBool::new(false),
            rejects_writes: AtomicBool::new(false),
            made,
            used_ms: AtomicU64::new(0),
            silences: 0,
        };
        let is_idle_after = |seconds| connection.is_idle(made + Duration::from_secs(seconds));

        assert!(!is_idle_after(59));
        assert!(is_idle_after(60));
        connection.used_ms.store(60_000, Ordering::Relaxed);
        assert!(!is_idle_after(119));
        assert!(is_idle_after(120));
    }
}
