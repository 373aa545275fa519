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
use super::limiter::{Turn, Turns};
pub(super) use super::registry::Roll;
use connection::Line;
pub(super) use origin::Origin;
use outcome::until;
use pool::{Alone, Pool};
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
    current: Mutex<Option<Arc<Line>>>,
    /// Whether several runtimes call by it, of which one drives it.
    is_shared: bool,
    turns: Arc<Turns>,
    /// Besides, connections for calls that keep one to themselves, where there are such calls.
    pool: OnceLock<Arc<Pool>>,
}

impl Node {
    pub(super) fn new(server: Arc<Server>, bounds: Bounds, is_shared: bool) -> Self {
        Self {
            turns: server.roll.turns(bounds),
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
        let (line, _turn) = self.in_turn(deadline).await?;
        self.until(deadline, &line, pin!(line.call(commands, deadline)))
            .await
    }

    /// Calls commands until that time; their replies as they came, one after the other, be they
    /// errors.
    pub(super) async fn call_raw(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Bytes, Fault> {
        let (line, _turn) = self.in_turn(deadline).await?;
        self.until(deadline, &line, pin!(line.call_raw(commands, deadline)))
            .await
    }

    /// Calls commands until that time; all replies, be they errors.
    pub(super) async fn send(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let (line, _turn) = self.in_turn(deadline).await?;
        self.until(deadline, &line, pin!(line.send(commands, deadline)))
            .await
    }

    /// Sends commands as [`Self::send`] does, but not in turn: what others wait for.
    pub(super) async fn ask(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let line = self.line(deadline).await?;
        self.until(deadline, &line, pin!(line.send(commands, deadline)))
            .await
    }

    /// A connection that nobody else uses, by that time, unless the server is known not to answer.
    pub(super) async fn alone(&self, deadline: Instant) -> Result<Alone<'_>, Fault> {
        self.admit(deadline).await?;
        let pool = self
            .pool
            .get_or_init(|| Arc::new(Pool::new(&self.server, self.turns.bounds())));
        pool.take(deadline).await
    }

    /// Loads all scripts again.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        let line = self.line(deadline).await?;
        self.until(deadline, &line, pin!(line.load(deadline))).await
    }

    /// A connection, and the right to use it.
    async fn in_turn(&self, deadline: Instant) -> Result<(Arc<Line>, Turn<'_>), Fault> {
        // before it waits: who would be refused has nothing to wait for
        let line = self.line(deadline).await?;
        if let Some(turn) = self.turns.take() {
            return Ok((line, turn));
        }
        let turn = self.turns.wait(Turns::last_of_use(deadline)).await?;
        // which may have broken meanwhile
        Ok((self.line(deadline).await?, turn))
    }

    /// A connection, unless the server is known not to answer.
    async fn line(&self, deadline: Instant) -> Result<Arc<Line>, Fault> {
        self.admit(deadline).await?;
        Ok(self.usable_line())
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
        let line = Arc::new(Line::new(&self.server, None));
        if !probe.spares_connections() || !self.has_connection() {
            *self.current() = Some(Arc::clone(&line));
        }
        tokio::spawn(probe.run(line));
    }

    fn has_connection(&self) -> bool {
        let current = self.current();
        current.as_ref().is_some_and(|line| line.is_made())
    }

    fn usable_line(&self) -> Arc<Line> {
        let mut current = self.current();
        match &*current {
            Some(line) if line.is_trusted(&self.server) => Arc::clone(line),
            before => {
                let line = Arc::new(Line::new(&self.server, before.as_deref()));
                *current = Some(Arc::clone(&line));
                line
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Line>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until<T>(
        &self,
        deadline: Instant,
        line: &Line,
        call: Pin<&mut impl Future<Output = Result<T, Fault>>>,
    ) -> Result<T, Fault> {
        let called = match self.is_shared {
            false => until(&self.server, line, call).await,
            // a runtime that is stuck is not to keep those of others
            true => {
                let call = timeout_at(deadline.into(), call);
                let call = pin!(call.map(|called| called.unwrap_or(Err(Fault::Timeout))));
                until(&self.server, line, call).await
            }
        };
        if matches!(called, Err(Fault::Timeout)) {
            self.probe_if_due();
        }
        called
    }
}
