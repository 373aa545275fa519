use deadpool::managed::Object;
use redis::{Pipeline, RedisError, Value};
use tokio::time::timeout_at;

use super::connector::{Connector, Pooled};
use super::{Pool, unusable};
use crate::scripts;
use crate::transport::Call;
use crate::transport::fault::Fault;

/// A pooled connection while one caller uses it. It returns to the pool if all commands were answered. Otherwise it is
/// closed, so that the next caller does not wait until an abandoned WAIT ends.
pub(super) struct ExclusiveConnection<'a> {
    pool: &'a Pool,
    /// `None` once closed.
    connection: Option<Object<Connector>>,
    is_answered: bool,
}

impl<'a> ExclusiveConnection<'a> {
    pub(super) fn new(pool: &'a Pool, connection: Object<Connector>) -> Self {
        Self {
            pool,
            connection: Some(connection),
            is_answered: true,
        }
    }

    pub(super) async fn call(&mut self, call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        match self.call_once(call).await {
            Err(fault) if fault.is_missing_script() => {
                let load = Call::new(scripts::load_all(), call.deadline);
                self.call_once(&load).await?;
                self.call_once(call).await
            }
            called => called,
        }
    }

    async fn call_once(&mut self, call: &Call<'_>) -> Result<Vec<Value>, Fault> {
        // built at the last moment, because WAIT must not wait longer than the remaining time
        let wait = call.confirmation.map(|it| it.wait(call.deadline));
        let commands = call.commands.iter().chain(&wait);
        let mut pipeline = Pipeline::with_capacity(call.commands.len() + 1);
        for command in commands {
            pipeline.add_command(command.into());
        }
        let Some(connection) = &mut self.connection else {
            return Err(Fault::Connect(unusable()));
        };
        self.is_answered = false;
        let connection = &mut connection.connection;
        let sent = connection.send_packed_commands(&pipeline, 0, pipeline.len());
        let Ok(replies) = timeout_at(call.deadline.into(), sent).await else {
            self.discard(Connector::discard);
            return Err(Fault::Timeout);
        };
        self.is_answered = replies.is_ok();
        let checked = replies.and_then(|replies| call.check(replies));
        checked.map_err(|error| self.fault(error))
    }

    fn fault(&self, error: RedisError) -> Fault {
        let fault = Fault::Call(error);
        if fault.is_read_only_error() {
            self.discard(Connector::discard_read_only);
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
