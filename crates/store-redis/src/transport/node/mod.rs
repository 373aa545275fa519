mod connection;
mod in_flight;
mod origin;
mod pool;
mod probe;
mod sentinel;
mod server;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::Value;
use tokio::runtime::Handle;
use tokio::time::timeout_at;

pub(super) use super::fault::Fault;
use super::limiter::CallLimiter;
pub use super::limiter::CallLimits;
pub(super) use super::registry::ConnectionRegistry;
pub(super) use super::wire::Reader;
use super::{Call, Command, Confirmation, Verdict, marker_for};
use crate::scripts;
use connection::Connection;
use in_flight::InFlight;
pub(super) use origin::Origin;
use pool::Pool;
use probe::Probe;
pub(super) use sentinel::Sentinels;
pub(super) use server::Server;

#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    mode: Mode,
    /// The multiplexed connection. It is opened on the caller's runtime at first use, and reopened whenever it breaks.
    current: Mutex<Option<Arc<Connection>>>,
    limiter: Arc<CallLimiter>,
    pool: OnceLock<Arc<Pool>>,
}

#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// A multiplexed connection that only its own runtime uses.
    Own,
    /// A multiplexed connection that several runtimes use. It is driven by the given runtime, or by the first runtime
    /// that uses it.
    Shared(Option<Handle>),
    /// Each call has its own connection.
    Pooled,
}

impl Node {
    pub(super) fn new(server: Arc<Server>, bounds: CallLimits, mode: Mode) -> Self {
        Self {
            limiter: server.registry.limiter(bounds),
            server,
            mode,
            current: Mutex::default(),
            pool: OnceLock::new(),
        }
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Returns all replies, or the first error in a checked reply. Loads the scripts again if the server has lost them.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Vec<Value>, Fault> {
        if self.is_pooled() || call.confirmation.is_some() {
            // boxed, so that the futures of requests stay small
            return Box::pin(self.call_exclusively(call)).await;
        }
        match self.call_once(&call).await {
            Err(fault) if fault.is_missing_script() => {
                Box::pin(async {
                    self.load(call.deadline).await?;
                    self.call_once(&call).await
                })
                .await
            }
            called => called,
        }
    }

    /// Returns raw replies, including errors. In pooled mode, returns `None` without sending the call, because pooled
    /// connections parse the replies themselves.
    pub(super) async fn call_raw(&self, call: &Call<'_>) -> Result<Option<Bytes>, Fault> {
        if self.is_pooled() {
            return Ok(None);
        }
        let (_, replies) = self.exchange(call).await?;
        Ok(Some(replies))
    }

    /// Sends a write followed by reads, and waits for replicas. If the write fails, returns its error unchanged. Any
    /// later error becomes [`Fault::Late`], because the write has been done. The future is boxed, so that callers that
    /// do not wait for replicas have small futures.
    pub(super) fn write_confirmed<'a>(
        &'a self,
        confirmation: &'a Confirmation,
        cmds: &'a [Command],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        let write = async move {
            let mut commands = cmds.to_vec();
            commands.push(marker_for(&cmds[0]));
            let call = Call {
                checked: 1,
                confirmation: Some(confirmation),
                ..Call::new(&commands, deadline)
            };
            let mut replies = self.call(call).await?;
            let (waited, written) = (replies.pop(), replies.pop());
            confirmation.check(waited, written)?;
            let replies = replies.into_iter().map(Value::extract_error);
            replies.collect::<Result<_, _>>().map_err(Fault::Late)
        };
        write.boxed()
    }

    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        let load = Call::new(scripts::load_all(), deadline).unlimited();
        match self.is_pooled() {
            true => self.call_exclusively(load).await.map(drop),
            false => self.call_once(&load).await.map(drop),
        }
    }

    async fn call_once(&self, call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        let (connection, replies) = self.exchange(call).await?;
        connection.read(&replies, call)
    }

    /// Sends a call over the multiplexed connection. Abandons the connection after a timeout, because if its peer is
    /// gone, the connection would remain broken for a quarter of an hour.
    async fn exchange(&self, call: &Call<'_>) -> Result<(Arc<Connection>, Bytes), Fault> {
        // consults the circuit breaker first, so that a refused call does not wait for a permit
        self.admit(call.deadline).await?;
        let _permit = match call.is_limited {
            true => Some(self.limiter.acquire(call.deadline).await?),
            false => None,
        };
        // the server may have become silent meanwhile
        self.admit(call.deadline).await?;
        let connection = self.usable_connection();
        let in_flight = InFlight::new(&self.server);
        let replies = {
            let exchange = pin!(connection.exchange(call));
            match self.mode {
                Mode::Own | Mode::Pooled => exchange.await,
                // needs its own timeout, because the runtime that drives the connection may be stuck
                Mode::Shared(_) => timeout_at(call.deadline.into(), exchange)
                    .await
                    .unwrap_or(Err(Fault::Timeout)),
            }
        };
        in_flight.end(&replies);
        if matches!(replies, Err(Fault::Timeout)) {
            connection.give_up();
            self.probe_if_due();
        }
        let replies = replies?;
        Ok((connection, replies))
    }

    async fn call_exclusively(&self, call: Call<'_>) -> Result<Vec<Value>, Fault> {
        self.admit(call.deadline).await?;
        let new = || Pool::new(&self.server, self.limiter.bounds());
        self.pool.get_or_init(new).call(&call).await
    }

    /// Rejects the call if the server is known to be silent or unreachable. May first wait for a probe in progress.
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

    /// Starts a probe if one is due. It runs on the caller's runtime, and continues even if the caller stops waiting.
    fn probe_if_due(&self) {
        let Some(probe) = Probe::begin(&self.server) else {
            return;
        };
        let connection = Arc::new(Connection::new(&self.server, None, None));
        let is_replaced = !probe.spares_connections() || !self.has_connection();
        // pooled calls, and calls on a different runtime, cannot use the probe's connection
        if is_replaced && matches!(self.mode, Mode::Own | Mode::Shared(None)) {
            *self.current() = Some(Arc::clone(&connection));
        }
        tokio::spawn(probe.run(connection));
    }

    fn has_connection(&self) -> bool {
        if self.is_pooled() {
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
                let runtime = match &self.mode {
                    Mode::Shared(runtime) => runtime.as_ref(),
                    Mode::Own | Mode::Pooled => None,
                };
                let connection = Connection::new(&self.server, before.as_deref(), runtime);
                let connection = Arc::new(connection);
                *current = Some(Arc::clone(&connection));
                connection
            }
        }
    }

    fn is_pooled(&self) -> bool {
        matches!(self.mode, Mode::Pooled)
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
