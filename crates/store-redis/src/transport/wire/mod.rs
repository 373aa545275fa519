//! A connection that many callers share. Commands go out in the order in which they were called, and the replies come
//! back in the same order ([protocol](https://redis.io/docs/latest/develop/reference/protocol-spec/)).
//!
//! It is our own because the library's costs more. A task on the callers' runtime sends all queued commands with one
//! system call, and hands out the replies as slices of its read buffer, so a caller that knows their form reads them
//! in place.

mod batch;
mod driver;
#[cfg(test)]
mod fuzz;
mod greeting;
mod primary_reads;
mod queue;
mod reader;
mod scan;
mod stream;
#[cfg(test)]
mod tests;
mod value;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use redis::{RedisError, Value};

pub(super) use greeting::unechoed;

use super::fault::Fault;
use super::{Command, Endpoint};
use driver::Driver;
use queue::{Calls, Queue, ReplyKind, Taken, Waiter, earlier, give_up_late};
pub(crate) use reader::Reader;
use reader::integer;
use scan::{Scan, length, malformed};
pub(super) use value::values;

/// A connection that all clones share. It closes when the last of them is dropped.
#[derive(Debug, Clone)]
pub(super) struct Multiplexer {
    /// Counted here, next to the task's own reference, so that dropping the last one is noticed.
    caller: Arc<Caller>,
}

/// The end of the queue that is called at.
#[derive(Debug)]
struct Caller(Arc<Queue>);

impl Multiplexer {
    /// Makes a connection.
    pub(super) async fn connect(endpoint: &Endpoint) -> Result<Self, RedisError> {
        let connected = Self::connect_once(endpoint).await;
        connected.map_err(|error| endpoint.explain(error))
    }

    async fn connect_once(endpoint: &Endpoint) -> Result<Self, RedisError> {
        let queue = stream::open(endpoint).await?;
        let wire = Self {
            caller: Arc::new(Caller(queue)),
        };
        greeting::greet(&wire, endpoint.info().redis_settings()).await?;
        Ok(wire)
    }

    /// Whether the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.caller.0.has_ended()
    }

    /// Calls commands; returns one reply for each, which may be an error. Callers bound the time.
    pub(super) async fn call(&self, commands: &[Command]) -> Result<Vec<Value>, RedisError> {
        match self.exchange(commands, None).await {
            Ok(replies) => values(&replies, commands.len()),
            Err(Fault::Call(error)) => Err(error),
            // without a deadline there is no other fault
            Err(_) => Err(ended()),
        }
    }

    /// Calls commands; returns their replies as they came, one after the other.
    ///
    /// # Errors
    /// [`Fault::Timeout`] at the deadline, [`Fault::Call`] when the connection ends before.
    pub(super) async fn exchange(
        &self,
        commands: &[Command],
        deadline: Option<Instant>,
    ) -> Result<Bytes, Fault> {
        let replies = self.caller.0.push(commands, deadline)?;
        replies.await.unwrap_or_else(|_| Err(Fault::Call(ended())))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.leave();
    }
}

fn ended() -> RedisError {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended").into()
}
