//! A master that sentinels watch over and replace
//! ([protocol](https://redis.io/docs/latest/develop/reference/sentinel-clients/)).

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::{ErrorKind, RedisError, Value, from_redis_value};
use tokio::time::timeout;

use crate::transport::{Command, Endpoint, Host, Multiplexer, command};

/// The sentinels, which know the master, and the connection to it.
pub(crate) struct Sentinels {
    sentinels: Vec<Endpoint>,
    master: String,
    server: Box<Endpoint>,
    /// How long one of them, or a server that one of them names, may take.
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

    /// The sentinels' name of the master.
    pub(super) fn master(&self) -> &str {
        &self.master
    }

    /// Connects to the master, and says how. All sentinels are asked at once; the first server that
    /// they name and that says of itself that it is a master is it. One that was cut off may name an
    /// old one.
    pub(super) async fn find(&self) -> Result<(Endpoint, Multiplexer), RedisError> {
        let asked = self
            .sentinels
            .iter()
            .map(|sentinel| self.send_unlimited(sentinel));
        let mut answers: FuturesUnordered<_> = asked.collect();
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

    async fn send_unlimited(&self, sentinel: &Endpoint) -> Result<Host, RedisError> {
        let send_unlimited = async {
            let connection = Multiplexer::connect(sentinel).await?;
            let mut address = command("SENTINEL");
            address.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
            let address = one(&connection, address).await?;
            Ok(from_redis_value::<Option<(String, u16)>>(address)?)
        };
        match timeout(self.timeout, send_unlimited).await {
            Ok(Ok(Some((name, port)))) => Ok(Host::new(name, port)),
            Ok(Ok(None)) => Err(failed("the sentinel knows no master of that name")),
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

/// Whether a server says that it is a `master`, a `slave` or a `sentinel`.
async fn has_role(connection: &Multiplexer, wanted: &[u8]) -> Result<bool, RedisError> {
    let role = one(connection, command("ROLE")).await?;
    let Value::Array(role) = role else {
        return Ok(false);
    };
    Ok(matches!(role.first(), Some(Value::BulkString(role)) if role == wanted))
}

async fn one(connection: &Multiplexer, command: Command) -> Result<Value, RedisError> {
    let reply = connection.call(&[command]).await?.pop();
    reply.unwrap_or(Value::Nil).extract_error()
}

fn failed(why: &'static str) -> RedisError {
    (ErrorKind::MasterNameNotFoundBySentinel, why).into()
}
