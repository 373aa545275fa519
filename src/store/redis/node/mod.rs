//! One server, by a connection that comes back by itself.

mod fault;
mod line;
mod origin;
mod pool;
mod sentinel;
mod wire;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use redis::{Pipeline, Value};
use tokio::time::timeout_at;

pub(super) use fault::Fault;
use line::Line;
pub(super) use origin::Origin;
use pool::{Alone, Pool};
pub(super) use sentinel::Sentinels;
pub(super) use wire::Reader;

/// One server: one multiplexed connection, made at its first use on the runtime that uses it, and
/// made anew after it broke.
#[derive(Debug)]
pub(super) struct Node {
    origin: Arc<Origin>,
    current: Mutex<Option<Arc<Line>>>,
    /// Besides, connections for calls that keep one to themselves, where there are such calls.
    pool: OnceLock<Arc<Pool>>,
}

impl Node {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin: Arc::new(origin),
            current: Mutex::default(),
            pool: OnceLock::new(),
        }
    }

    /// The same server by a connection of its own.
    pub(super) fn another(&self) -> Self {
        Self {
            origin: Arc::clone(&self.origin),
            current: Mutex::default(),
            pool: OnceLock::new(),
        }
    }

    /// Calls commands until that time; all replies, or the first that is an error. A script that the
    /// server has lost is loaded again.
    pub(super) async fn call(
        &self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let line = self.line();
        until(deadline, &line, line.call(pipeline)).await
    }

    /// Calls commands until that time; their replies as they came, one after the other, be they
    /// errors.
    pub(super) async fn call_raw(
        &self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Bytes, Fault> {
        let line = self.line();
        until(deadline, &line, line.call_raw(pipeline)).await
    }

    /// Calls commands until that time; all replies, be they errors.
    pub(super) async fn send(
        &self,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let line = self.line();
        until(deadline, &line, line.send(pipeline)).await
    }

    /// A connection that nobody else uses, by that time.
    pub(super) async fn alone(&self, deadline: Instant) -> Result<Alone, Fault> {
        let pool = self.pool.get_or_init(|| Arc::new(Pool::new(&self.origin)));
        pool.take(deadline).await
    }

    /// Loads all scripts again.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        let line = self.line();
        until(deadline, &line, line.load()).await
    }

    fn line(&self) -> Arc<Line> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(line) if line.is_usable() => Arc::clone(line),
            before => {
                let line = Line::new(&self.origin, before.as_deref());
                Arc::clone(current.insert(Arc::new(line)))
            }
        }
    }
}

/// After a timeout that connection is not used again: one that has lost its other end without a word
/// would stay so for a quarter of an hour.
async fn until<T>(
    deadline: Instant,
    line: &Line,
    call: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    timeout_at(deadline.into(), call).await.unwrap_or_else(|_| {
        line.give_up();
        Err(Fault::Timeout)
    })
}
