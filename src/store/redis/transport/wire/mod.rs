//! A connection: commands of many callers go out in the order in which they were called, and the
//! replies come back in it ([protocol](https://redis.io/docs/latest/develop/reference/protocol-spec/)).
//!
//! It is ours for what it costs. A task on the callers' own runtime sends with one call of the system
//! what was called meanwhile, and hands on the replies as slices of what it has read, so that who
//! knows their form reads them where they lie.

mod driver;
#[cfg(test)]
mod fuzz;
mod greeting;
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
use redis::{ConnectionInfo, RedisError, Value};

pub(super) use greeting::unechoed;
pub(super) use queue::Failure;
use queue::Queue;

use super::commands::Command;
pub(crate) use reader::Reader;

/// A connection that is used by all its clones, until the last of them is dropped.
#[derive(Debug, Clone)]
pub(super) struct Multiplexer {
    /// Counted here, beside the task's own, so that the last one's end is seen.
    caller: Arc<Caller>,
}

/// The end of the queue that is called at.
#[derive(Debug)]
struct Caller(Arc<Queue>);

impl Multiplexer {
    /// Makes a connection.
    pub(super) async fn connect(info: &ConnectionInfo) -> Result<Self, RedisError> {
        let queue = stream::open(info.addr()).await?;
        let wire = Self {
            caller: Arc::new(Caller(queue)),
        };
        greeting::greet(&wire, info.redis_settings()).await?;
        Ok(wire)
    }

    /// Whether it is of no more use.
    pub(super) fn has_ended(&self) -> bool {
        self.caller.0.has_ended()
    }

    /// Calls commands; one reply for each, be it an error. How long that may take is for the caller to
    /// bound.
    pub(super) async fn call(&self, commands: &[Command]) -> Result<Vec<Value>, RedisError> {
        match self.exchange(commands, None).await {
            Ok(replies) => value::all(&replies, commands.len()),
            Err(Failure::Broken(error)) => Err(error),
            // which has no time
            Err(Failure::Late) => Err(ended()),
        }
    }

    /// Calls commands until that time; one reply for each, be it an error.
    pub(super) async fn call_by(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Failure> {
        let replies = self.call_raw(commands, deadline).await?;
        value::all(&replies, commands.len()).map_err(Failure::Broken)
    }

    /// Calls commands until that time; their replies as they came, one after the other.
    pub(super) async fn call_raw(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Bytes, Failure> {
        self.exchange(commands, Some(deadline)).await
    }

    async fn exchange(
        &self,
        commands: &[Command],
        deadline: Option<Instant>,
    ) -> Result<Bytes, Failure> {
        let called = self.caller.0.call(commands, deadline);
        let replies = called.map_err(Failure::Broken)?;
        replies
            .await
            .unwrap_or_else(|_| Err(Failure::Broken(ended())))
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
