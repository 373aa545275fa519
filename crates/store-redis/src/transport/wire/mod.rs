//! A multiplexed connection. Replies arrive in the order of the commands
//! ([protocol](https://redis.io/docs/latest/develop/reference/protocol-spec/)).
//!
//! Uses less CPU than the multiplexed connection of the `redis` crate. A task on the callers' runtime sends all queued
//! commands in one system call. It passes on replies as slices of its read buffer, which callers can parse in place.

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

pub(super) use greeting::without_password;

use super::fault::Fault;
use super::{Command, Endpoint};
use driver::Driver;
use queue::{Calls, Queue, ReplyKind, Taken, Waiter, earlier, give_up_late};
pub(crate) use reader::Reader;
use reader::integer;
use scan::{Scan, length, malformed};
pub(super) use value::values;

/// A handle to a connection. Clones share the connection, which closes when the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct Multiplexer {
    /// Held by the callers, but not by the connection's task, so that the task notices when no caller remains.
    caller: Arc<Caller>,
}

#[derive(Debug)]
struct Caller(Arc<Queue>);

impl Multiplexer {
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

    pub(super) fn has_ended(&self) -> bool {
        self.caller.0.has_ended()
    }

    /// Sends commands, and returns one reply for each, possibly an error. Callers must apply their own time limit.
    pub(super) async fn call(&self, commands: &[Command]) -> Result<Vec<Value>, RedisError> {
        match self.exchange(commands, None).await {
            Ok(replies) => values(&replies, commands.len()),
            Err(Fault::Call(error)) => Err(error),
            // without a deadline, no other fault is possible
            Err(_) => Err(ended()),
        }
    }

    /// Returns raw replies. Fails with [`Fault::Timeout`] at the deadline, or [`Fault::Call`] if the connection ends.
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
        self.0.abandon();
    }
}

fn ended() -> RedisError {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended").into()
}
