//! One connection to one server, from the attempt to make it to its end.

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

use super::server::{Server, history_questions};
use crate::scripts;
use crate::transport::fault::Fault;
use crate::transport::{Call, Multiplexer, values};
use threadkeep_store::millis;

/// How long the failure of an attempt to connect answers calls before the next attempt: a server that is
/// away, or takes no writes, gets no storm of connections.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Longest idle time of a connection before it is replaced.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A multiplexed connection, and whether it is still to be used.
#[derive(Debug)]
pub(super) struct Connection {
    /// It is being made, or it is made. All callers wait for the same attempt, which goes on when one of them
    /// gives up: a Redis that hangs gets one connection, not one for each request.
    connection: Shared<BoxFuture<'static, Result<Multiplexer, RedisError>>>,
    is_given_up: AtomicBool,
    /// The server said that it takes no writes.
    is_unwilling: AtomicBool,
    made: Instant,
    /// When it was last used, in milliseconds since it was made.
    used_ms: AtomicU64,
    /// How often the server had been silent before.
    silences: u64,
}

impl Connection {
    /// A connection that is made when the first caller waits for it, on that caller's runtime or the given one.
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
            is_unwilling: AtomicBool::new(false),
            made,
            used_ms: AtomicU64::new(0),
            silences: server.breaker.silences(),
        }
    }

    /// When another connection may be made in its place.
    fn next_attempt(&self) -> Instant {
        let now = Instant::now();
        match self.is_unwilling.load(Ordering::Relaxed) {
            true => now.max(self.made + RETRY_PAUSE),
            false => now,
        }
    }

    /// Whether calls still go over it. The failure of an attempt answers all calls that come shortly after
    /// it. A connection that was idle for long is replaced, because its other end may be gone.
    pub(super) fn is_usable(&self) -> bool {
        let is_usable = match self.connection.peek() {
            None => true,
            Some(Ok(wire)) => !wire.has_ended() && !self.is_idle(Instant::now()),
            Some(Err(_)) => self.made.elapsed() < RETRY_PAUSE,
        };
        is_usable && !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether it is usable and was made after the server was last silent: one from before may have lost its
    /// other end then.
    pub(super) fn is_trusted(&self, server: &Server) -> bool {
        self.silences == server.breaker.silences() && self.is_usable()
    }

    /// Whether it is made and usable.
    pub(super) fn is_made(&self) -> bool {
        self.is_usable() && matches!(self.connection.peek(), Some(Ok(_)))
    }

    fn is_idle(&self, now: Instant) -> bool {
        let used = Duration::from_millis(self.used_ms.load(Ordering::Relaxed));
        let age = now.saturating_duration_since(self.made);
        age.saturating_sub(used) >= IDLE_MAX
    }

    /// Makes it unusable.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Calls commands; their replies as they came, be they errors.
    pub(super) async fn exchange(&self, call: &Call<'_>) -> Result<Bytes, Fault> {
        let made = match self.connection.peek() {
            Some(made) => made.clone(),
            // boxed: this happens once for each connection
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

    /// Reads the replies to a call; all, or the first error among those that are checked.
    pub(super) fn read(&self, replies: &[u8], call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        let replies = values(replies, call.commands.len());
        let checked = replies.and_then(|replies| call.check(replies));
        checked
            .map_err(Fault::Call)
            .inspect_err(|fault| self.observe(fault))
    }

    /// Gives the connection up if it has ended, or the server takes no writes.
    fn observe(&self, fault: &Fault) {
        let is_unwilling = fault.is_of_the_role();
        if is_unwilling {
            self.is_unwilling.store(true, Ordering::Relaxed);
        }
        if is_unwilling || fault.is_of_the_connection() {
            self.give_up();
        }
    }
}

/// Has a runtime make the connection, unless its callers give up, and drive it.
async fn on(
    runtime: Handle,
    connecting: impl Future<Output = Result<Multiplexer, RedisError>> + Send + 'static,
) -> Result<Multiplexer, RedisError> {
    let made = AbortOnDropHandle::new(runtime.spawn(connecting)).await;
    made.unwrap_or_else(|_| {
        Err((ErrorKind::Client, "the thread of the connection has ended").into())
    })
}

/// Makes the connection, not before that time, and tells the breaker whether that worked.
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

/// Makes a connection to a server that has the scripts.
async fn connect_ready(server: &Server) -> Result<Multiplexer, RedisError> {
    let connection = server.origin.connect().await?;
    server.connected(&connection.call(&history_questions()).await?);
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
            is_unwilling: AtomicBool::new(false),
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
