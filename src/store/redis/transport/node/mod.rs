//! One server, by a connection that comes back by itself.

mod connection;
mod origin;
mod outcome;
mod pool;
mod probe;
mod sentinel;
mod server;

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use redis::Value;
use tokio::time::timeout_at;

use super::breaker::Verdict;
pub(super) use super::fault::Fault;
pub use super::limiter::Bounds;
use super::limiter::{CallLimiter, Permit};
pub(super) use super::registry::ConnectionRegistry;
use connection::Connection;
pub(super) use origin::Origin;
use outcome::until;
use pool::{ExclusiveConnection, Pool};
use probe::Probe;
pub(super) use sentinel::Sentinels;
pub(super) use server::Server;

use super::commands::Command;
pub(super) use super::wire::Reader;

/// One server: one multiplexed connection, made at its first use on the runtime that uses it, and
/// made anew after it broke.
#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    current: Mutex<Option<Arc<Connection>>>,
    /// Whether several runtimes call by it, of which one drives it.
    is_shared: bool,
    limiter: Arc<CallLimiter>,
    /// Besides, connections for calls that keep one to themselves, where there are such calls.
    pool: OnceLock<Arc<Pool>>,
}

impl Node {
    pub(super) fn new(server: Arc<Server>, bounds: Bounds, is_shared: bool) -> Self {
        Self {
            limiter: server.registry.limiter(bounds),
            server,
            current: Mutex::default(),
            is_shared,
            pool: OnceLock::new(),
        }
    }

    /// The server, which others use too.
    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Calls commands until that time; all replies, or the first that is an error. A script that the
    /// server has lost is loaded again.
    pub(super) async fn call(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.call(commands, deadline)),
        )
        .await
    }

    /// Calls commands until that time; their replies as they came, one after the other, be they
    /// errors.
    pub(super) async fn call_raw(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Bytes, Fault> {
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.call_raw(commands, deadline)),
        )
        .await
    }

    /// Calls commands until that time; all replies, be they errors.
    pub(super) async fn send(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.send(commands, deadline)),
        )
        .await
    }

    /// Sends commands as [`Self::send`] does, but not in turn: what others wait for.
    pub(super) async fn send_unlimited(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let connection = self.connection(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.send(commands, deadline)),
        )
        .await
    }

    /// A connection that nobody else uses, by that time, unless the server is known not to answer.
    pub(super) async fn exclusive(
        &self,
        deadline: Instant,
    ) -> Result<ExclusiveConnection<'_>, Fault> {
        self.admit(deadline).await?;
        let pool = self
            .pool
            .get_or_init(|| Arc::new(Pool::new(&self.server, self.limiter.bounds())));
        pool.take(deadline).await
    }

    /// Loads all scripts again.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        let connection = self.connection(deadline).await?;
        self.until(deadline, &connection, pin!(connection.load(deadline)))
            .await
    }

    /// A connection, and the right to use it.
    async fn permitted(&self, deadline: Instant) -> Result<(Arc<Connection>, Permit<'_>), Fault> {
        // before it waits: who would be refused has nothing to wait for
        let connection = self.connection(deadline).await?;
        if let Some(permit) = self.limiter.take() {
            return Ok((connection, permit));
        }
        let permit = self
            .limiter
            .wait(CallLimiter::last_of_use(deadline))
            .await?;
        // which may have broken meanwhile
        Ok((self.connection(deadline).await?, permit))
    }

    /// A connection, unless the server is known not to answer.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Fault> {
        self.admit(deadline).await?;
        Ok(self.usable_connection())
    }

    /// Refuses when the server is known not to answer, after a probe if one is on its way.
    async fn admit(&self, deadline: Instant) -> Result<(), Fault> {
        if !self.server.breaker.is_closed() {
            self.probe_if_due();
            let verdict = match self.judge() {
                Verdict::Refused(_, Some(probed)) => {
                    timeout_at(deadline.into(), probed).await.ok();
                    self.judge()
                }
                verdict => verdict,
            };
            if let Verdict::Refused(fault, _) = verdict {
                return Err(fault);
            }
        }
        Ok(())
    }

    fn judge(&self) -> Verdict<'_> {
        let has_connection = self.has_connection();
        self.server.breaker.judge(has_connection)
    }

    /// On the runtime of who calls, and to its end, even if the caller gives up.
    fn probe_if_due(&self) {
        let Some(probe) = Probe::begin(&self.server) else {
            return;
        };
        let connection = Arc::new(Connection::new(&self.server, None));
        if !probe.spares_connections() || !self.has_connection() {
            *self.current() = Some(Arc::clone(&connection));
        }
        tokio::spawn(probe.run(connection));
    }

    fn has_connection(&self) -> bool {
        let current = self.current();
        current
            .as_ref()
            .is_some_and(|connection| connection.is_made())
    }

    fn usable_connection(&self) -> Arc<Connection> {
        let mut current = self.current();
        match &*current {
            Some(connection) if connection.is_trusted(&self.server) => Arc::clone(connection),
            before => {
                let connection = Arc::new(Connection::new(&self.server, before.as_deref()));
                *current = Some(Arc::clone(&connection));
                connection
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until<T>(
        &self,
        deadline: Instant,
        connection: &Connection,
        call: Pin<&mut impl Future<Output = Result<T, Fault>>>,
    ) -> Result<T, Fault> {
        let called = match self.is_shared {
            false => until(&self.server, connection, call).await,
            // a runtime that is stuck is not to keep those of others
            true => {
                let call = timeout_at(deadline.into(), call);
                let call = pin!(call.map(|called| called.unwrap_or(Err(Fault::Timeout))));
                until(&self.server, connection, call).await
            }
        };
        if matches!(called, Err(Fault::Timeout)) {
            self.probe_if_due();
        }
        called
    }
}
