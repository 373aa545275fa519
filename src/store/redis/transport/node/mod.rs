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
use futures_util::future::BoxFuture;
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

/// One server, as one user of the store calls it.
#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    mode: Mode,
    /// The multiplexed connection. It is made at its first use, on the runtime that uses it, and again
    /// after it broke.
    current: Mutex<Option<Arc<Connection>>>,
    limiter: Arc<CallLimiter>,
    /// Connections that serve one call at a time, once there are such calls.
    pool: OnceLock<Arc<Pool>>,
}

/// What a node's calls go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A multiplexed connection that only the runtime that made it uses.
    Own,
    /// A multiplexed connection that several runtimes use and one drives.
    Shared,
    /// The pool: each call has a connection to itself.
    Pooled,
}

impl Node {
    pub(super) fn new(server: Arc<Server>, bounds: Bounds, mode: Mode) -> Self {
        Self {
            limiter: server.registry.limiter(bounds),
            server,
            mode,
            current: Mutex::default(),
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
        if self.mode == Mode::Pooled {
            return self.call_pooled(commands, deadline).await;
        }
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.call(commands, deadline)),
        )
        .await
    }

    /// Calls commands until that time; their replies as they came, one after the other, be they
    /// errors. None and no call where replies cannot be had so: those of the pool are read by its
    /// connections.
    pub(super) async fn call_raw(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Option<Bytes>, Fault> {
        if self.mode == Mode::Pooled {
            return Ok(None);
        }
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.call_raw(commands, deadline)),
        )
        .await
        .map(Some)
    }

    /// Calls commands until that time; all replies, be they errors.
    pub(super) async fn send(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        if self.mode == Mode::Pooled {
            return self.send_pooled(commands, deadline, true).await;
        }
        let (connection, _permit) = self.permitted(deadline).await?;
        self.until(
            deadline,
            &connection,
            pin!(connection.send(commands, deadline)),
        )
        .await
    }

    /// Sends commands as [`Self::send`] does, but without a permit: what others wait for.
    pub(super) async fn send_unlimited(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        if self.mode == Mode::Pooled {
            return self.send_pooled(commands, deadline, false).await;
        }
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
        self.pool().take(deadline).await
    }

    /// In a box, as the others here: this keeps the calls of requests small.
    fn call_pooled<'a>(
        &'a self,
        commands: &'a [Command],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        let call = async move {
            let exclusive = self.exclusive(deadline).await?;
            exclusive.call(commands, commands.len(), deadline).await
        };
        call.boxed()
    }

    fn send_pooled<'a>(
        &'a self,
        commands: &'a [Command],
        deadline: Instant,
        is_limited: bool,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        let send = async move {
            self.admit(deadline).await?;
            let exclusive = match is_limited {
                true => self.pool().take(deadline).await?,
                false => self.pool().take_unlimited(deadline).await?,
            };
            exclusive.send(commands, deadline).await
        };
        send.boxed()
    }

    fn load_pooled(&self, deadline: Instant) -> BoxFuture<'_, Result<(), Fault>> {
        let load = async move { self.exclusive(deadline).await?.load(deadline).await };
        load.boxed()
    }

    fn pool(&self) -> &Arc<Pool> {
        let new = || Pool::new(&self.server, self.limiter.bounds());
        self.pool.get_or_init(new)
    }

    /// Loads all scripts again.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        if self.mode == Mode::Pooled {
            return self.load_pooled(deadline).await;
        }
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
        let is_replaced = !probe.spares_connections() || !self.has_connection();
        if is_replaced && self.mode != Mode::Pooled {
            *self.current() = Some(Arc::clone(&connection));
        }
        tokio::spawn(probe.run(connection));
    }

    fn has_connection(&self) -> bool {
        if self.mode == Mode::Pooled {
            return self.pool.get().is_some_and(|pool| pool.has_idle());
        }
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

    /// Waits for what was called. After a timeout that connection is not used again: one that has lost
    /// its other end without a word would stay so for a quarter of an hour.
    ///
    /// The call stays where it is: it is large, and would be moved with every request.
    async fn until<T>(
        &self,
        deadline: Instant,
        connection: &Connection,
        call: Pin<&mut impl Future<Output = Result<T, Fault>>>,
    ) -> Result<T, Fault> {
        let called = match self.mode {
            Mode::Own | Mode::Pooled => until(&self.server, call).await,
            // a runtime that is stuck is not to keep those of others
            Mode::Shared => {
                let call = timeout_at(deadline.into(), call);
                let call = pin!(call.map(|called| called.unwrap_or(Err(Fault::Timeout))));
                until(&self.server, call).await
            }
        };
        if matches!(called, Err(Fault::Timeout)) {
            connection.give_up();
            self.probe_if_due();
        }
        called
    }
}
