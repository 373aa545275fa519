//! A connection of the pool, while one call uses it.

use std::pin::pin;
use std::time::Instant;

use deadpool::managed::Object;
use redis::{Pipeline, RedisError, Value};
use tokio::time::timeout_at;

use super::connector::{Connector, Pooled};
use super::{Pool, unusable};
use crate::store::redis::scripts;
use crate::store::redis::transport::commands::Command;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::limiter::Permit;
use crate::store::redis::transport::node::connection::{all, is_missing_script};
use crate::store::redis::transport::node::outcome::until;

/// A connection that nobody else uses. It goes back to the pool if it has answered all that it was sent,
/// and is closed otherwise: the next caller must not wait for the WAIT of one that gave up.
pub(crate) struct ExclusiveConnection<'a> {
    pool: &'a Pool,
    /// None once it was closed.
    connection: Option<Object<Connector>>,
    is_answered: bool,
    _permit: Option<Permit<'a>>,
}

impl<'a> ExclusiveConnection<'a> {
    pub(super) fn new(
        pool: &'a Pool,
        connection: Object<Connector>,
        permit: Option<Permit<'a>>,
    ) -> Self {
        Self {
            pool,
            connection: Some(connection),
            is_answered: true,
            _permit: permit,
        }
    }

    /// Calls commands until that time; all replies, or the first that is an error of the first so
    /// many. Errors after these are among the replies. A script that the server has lost is loaded
    /// again.
    pub(crate) async fn call(
        mut self,
        commands: &[Command],
        leading: usize,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let server = self.pool.server();
        until(server, pin!(self.call_led(commands, leading, deadline))).await
    }

    /// Calls commands until that time; all replies, be they errors.
    pub(crate) async fn send(
        mut self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let server = self.pool.server();
        until(server, pin!(self.exchange(commands, deadline))).await
    }

    /// Loads all scripts.
    pub(crate) async fn load(self, deadline: Instant) -> Result<(), Fault> {
        let load = scripts::load_all();
        self.call(&load, load.len(), deadline).await.map(drop)
    }

    async fn call_led(
        &mut self,
        commands: &[Command],
        leading: usize,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let mut replies = all(self.exchange(commands, deadline).await?, leading);
        if is_missing_script(&replies) {
            let loaded = self.exchange(&scripts::load_all(), deadline).await?;
            all(loaded, usize::MAX).map_err(|error| self.fault(error))?;
            replies = all(self.exchange(commands, deadline).await?, leading);
        }
        replies.map_err(|error| self.fault(error))
    }

    async fn exchange(
        &mut self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.into());
        }
        let Some(connection) = &mut self.connection else {
            return Err(Fault::Connect(unusable()));
        };
        self.is_answered = false;
        let connection = &mut connection.connection;
        let sent = connection.send_packed_commands(&pipeline, 0, commands.len());
        match timeout_at(deadline.into(), sent).await {
            Ok(Ok(replies)) => {
                self.is_answered = true;
                Ok(replies)
            }
            Ok(Err(error)) => Err(self.fault(error)),
            Err(_) => {
                self.discard(Connector::discard);
                Err(Fault::Timeout)
            }
        }
    }

    fn fault(&self, error: RedisError) -> Fault {
        let fault = Fault::Call(error);
        if fault.is_of_the_role() {
            self.discard(Connector::discard_unwilling);
        } else if fault.is_of_the_connection() {
            self.discard(Connector::discard);
        }
        fault
    }

    fn discard(&self, discard: impl Fn(&Connector, &Pooled)) {
        if let Some(connection) = &self.connection {
            discard(self.pool.connections.manager(), connection);
        }
    }
}

impl Drop for ExclusiveConnection<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take_if(|_| !self.is_answered) {
            drop(Object::take(connection));
        }
    }
}
