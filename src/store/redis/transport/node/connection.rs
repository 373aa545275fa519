//! One connection to one server, from the attempt to make it to its end.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::{sleep_until, timeout_at};

use super::server::Server;
use crate::store::redis::scripts;
use crate::store::redis::transport::commands::Command;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::wire::{Failure, Multiplexer};

/// How long what came of one attempt to reach a server stands before another is made: one that is
/// not there, or takes no writes, gets no storm of connections.
const PATIENCE: Duration = Duration::from_millis(100);

/// A connection and whether it is known to be of no more use.
#[derive(Debug)]
pub(super) struct Connection {
    /// It is being made, or it is made. All who wait for it wait for the same attempt, which goes on
    /// when one of them gives up: a Redis that hangs gets one connection, not one for each request.
    connection: Shared<BoxFuture<'static, Result<Multiplexer, RedisError>>>,
    is_given_up: AtomicBool,
    /// The server said that it takes no writes.
    is_unwilling: AtomicBool,
    made: Instant,
    /// How often the server had been silent before.
    silences: u64,
}

impl Connection {
    /// A connection that is made when it is first waited for, on the runtime of who does.
    pub(super) fn new(server: &Arc<Server>, after: Option<&Self>) -> Self {
        let made = after.map_or_else(Instant::now, Self::next_attempt);
        Self {
            connection: connect(Arc::clone(server), made).boxed().shared(),
            is_given_up: AtomicBool::new(false),
            is_unwilling: AtomicBool::new(false),
            made,
            silences: server.breaker.silences(),
        }
    }

    /// When one may be made in its place.
    fn next_attempt(&self) -> Instant {
        let now = Instant::now();
        match self.is_unwilling.load(Ordering::Relaxed) {
            true => now.max(self.made + PATIENCE),
            false => now,
        }
    }

    /// Whether it is still to be used. What an attempt failed with is told to all who come shortly
    /// after it.
    pub(super) fn is_usable(&self) -> bool {
        let is_usable = match self.connection.peek() {
            None => true,
            Some(Ok(wire)) => !wire.has_ended(),
            Some(Err(_)) => self.made.elapsed() < PATIENCE,
        };
        is_usable && !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether it is still to be used, and was made after the server was last silent: one from before
    /// may have lost its other end then.
    pub(super) fn is_trusted(&self, server: &Server) -> bool {
        self.silences == server.breaker.silences() && self.is_usable()
    }

    /// Whether it was made, and is still to be used.
    pub(super) fn is_made(&self) -> bool {
        self.is_usable() && matches!(self.connection.peek(), Some(Ok(_)))
    }

    /// It is not used again.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Calls commands; all replies, or the first that is an error.
    pub(super) async fn call(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let connection = self.connection_by(deadline).await?;
        let replies = connection.call_by(commands, deadline).await;
        let mut replies = all(self.heard(replies)?, usize::MAX);
        if is_missing_script(&replies) {
            self.load(deadline).await?;
            let again = connection.call_by(commands, deadline).await;
            replies = all(self.heard(again)?, usize::MAX);
        }
        replies.map_err(|error| self.fault(error))
    }

    /// Calls commands; their replies as they came, one after the other, be they errors.
    pub(super) async fn call_raw(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Bytes, Fault> {
        let connection = self.connection_by(deadline).await?;
        self.heard(connection.call_raw(commands, deadline).await)
    }

    /// Calls commands; all replies, be they errors.
    pub(super) async fn send(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let connection = self.connection_by(deadline).await?;
        self.heard(connection.call_by(commands, deadline).await)
    }

    /// Loads all scripts, which are loaded already unless the server has lost them since.
    pub(super) async fn load(&self, deadline: Instant) -> Result<(), Fault> {
        let loaded = self.send(&scripts::load_all(), deadline).await?;
        let loaded = all(loaded, usize::MAX).map(drop);
        loaded.map_err(|error| self.fault(error))
    }

    async fn connection_by(&self, deadline: Instant) -> Result<Multiplexer, Fault> {
        match self.connection.peek() {
            Some(made) => made.clone().map_err(Fault::Connect),
            // in a box: it is so once for each connection
            None => Box::pin(timeout_at(deadline.into(), self.connection()))
                .await
                .unwrap_or(Err(Fault::Timeout)),
        }
    }

    async fn connection(&self) -> Result<Multiplexer, Fault> {
        self.connection.clone().await.map_err(Fault::Connect)
    }

    fn heard<T>(&self, replies: Result<T, Failure>) -> Result<T, Fault> {
        replies.map_err(|failure| match failure {
            Failure::Late => Fault::Timeout,
            Failure::Broken(error) => self.fault(error),
        })
    }

    fn fault(&self, error: RedisError) -> Fault {
        let fault = Fault::Call(error);
        let is_unwilling = fault.is_of_the_role();
        if is_unwilling {
            self.is_unwilling.store(true, Ordering::Relaxed);
        }
        if is_unwilling || fault.is_of_the_connection() {
            self.give_up();
        }
        fault
    }
}

/// Makes the connection, not before that time, and tells the breaker what came of it.
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
    load(&connection).await?;
    Ok(connection)
}

/// All replies, or the first that is an error of the first so many.
pub(super) fn all(mut replies: Vec<Value>, leading: usize) -> Result<Vec<Value>, RedisError> {
    for reply in replies.iter_mut().take(leading) {
        *reply = mem::replace(reply, Value::Nil).extract_error()?;
    }
    Ok(replies)
}

pub(super) fn is_missing_script<T>(reply: &Result<T, RedisError>) -> bool {
    let missing = ErrorKind::Server(ServerErrorKind::NoScript);
    matches!(reply, Err(error) if error.kind() == missing)
}

async fn load(connection: &Multiplexer) -> Result<(), RedisError> {
    let loaded = connection.call(&scripts::load_all()).await?;
    all(loaded, usize::MAX).map(drop)
}
