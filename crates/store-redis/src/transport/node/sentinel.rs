//! Finds a master behind sentinels ([protocol](https://redis.io/docs/latest/develop/reference/sentinel-clients/)).

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::{ErrorKind, RedisError, Value, from_redis_value};
use tokio::time::timeout;

use crate::transport::{Command, Endpoint, Host, Multiplexer, command};

pub(crate) struct Sentinels {
    sentinels: Vec<Endpoint>,
    master: String,
    server: Box<Endpoint>,
    /// Time limit for each sentinel, and for each server that a sentinel names.
    timeout: Duration,
}

impl Sentinels {
    pub(crate) fn new(
        sentinels: Vec<Endpoint>,
        master: String,
        server: Box<Endpoint>,
        timeout: Duration,
    ) -> Self {
        Self {
            sentinels,
            master,
            server,
            timeout,
        }
    }

    pub(super) fn master(&self) -> &str {
        &self.master
    }

    /// Connects to the master. Asks all sentinels in parallel, because an isolated sentinel may name a former master.
    /// Uses the first server that confirms that it is the master.
    pub(super) async fn find(&self) -> Result<(Endpoint, Multiplexer), RedisError> {
        let requests = self.sentinels.iter().map(|sentinel| self.ask(sentinel));
        let mut answers: FuturesUnordered<_> = requests.collect();
        let mut tried = HashSet::new();
        let mut failure = None;
        while let Some(answer) = answers.next().await {
            let made = match answer {
                Ok(host) if tried.contains(&host) => continue,
                Ok(host) => {
                    let made = self.connect_to(&host).await;
                    tried.insert(host);
                    made
                }
                Err(error) => Err(error),
            };
            match made {
                Ok(found) => return Ok(found),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| failed("there are no sentinels")))
    }

    async fn ask(&self, sentinel: &Endpoint) -> Result<Host, RedisError> {
        let asking = async {
            let connection = Multiplexer::connect(sentinel).await?;
            let mut address = command("SENTINEL");
            address.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
            let address = call_one(&connection, address).await?;
            Ok(from_redis_value::<Option<(String, u16)>>(address)?)
        };
        match timeout(self.timeout, asking).await {
            Ok(Ok(Some((name, port)))) => Ok(Host::new(name, port)),
            Ok(Ok(None)) => Err(failed("the sentinel has no master with this name")),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(failed("the sentinel does not answer")),
        }
    }

    async fn connect_to(&self, host: &Host) -> Result<(Endpoint, Multiplexer), RedisError> {
        let server = self.server.at(host);
        let connecting = async {
            let connection = Multiplexer::connect(&server).await?;
            match has_role(&connection, b"master").await? {
                true => Ok((server, connection)),
                false => Err(failed("the server that a sentinel names is no master")),
            }
        };
        match timeout(self.timeout, connecting).await {
            Ok(made) => made,
            Err(_) => Err(failed("the server that a sentinel names does not answer")),
        }
    }
}

/// Returns whether the server has the role `expected`: `master`, `slave` or `sentinel`.
async fn has_role(connection: &Multiplexer, expected: &[u8]) -> Result<bool, RedisError> {
    let role = call_one(connection, command("ROLE")).await?;
    let Value::Array(role) = role else {
        return Ok(false);
    };
    Ok(matches!(role.first(), Some(Value::BulkString(role)) if role == expected))
}

async fn call_one(connection: &Multiplexer, command: Command) -> Result<Value, RedisError> {
    let reply = connection.call(&[command]).await?.pop();
    reply.unwrap_or(Value::Nil).extract_error()
}

fn failed(why: &'static str) -> RedisError {
    (ErrorKind::MasterNameNotFoundBySentinel, why).into()
}
