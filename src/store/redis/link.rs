//! A connection that comes back by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion,
    PushInfo, PushKind, RedisError, ServerErrorKind, Value,
};
use tokio::time::timeout_at;

use super::{replies, scripts};
use crate::store::{StoreError, install_tls_provider, millis};

/// How long a connection to a server that takes no writes is kept before another is tried.
const PATIENCE: Duration = Duration::from_millis(100);

/// One multiplexed connection, made at its first use on the runtime that uses it, and made anew
/// after it broke. The library is told not to time out or retry: both are decided here.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    timeout: Duration,
    current: Mutex<Option<Arc<Slot>>>,
}

/// A connection and whether it is known to be of no more use.
#[derive(Debug)]
struct Slot {
    /// It is being made, or it is made. All who wait for it wait for the same attempt, which goes on
    /// when one of them gives up: a Redis that hangs gets one connection, not one for each request.
    connection: Shared<BoxFuture<'static, Result<MultiplexedConnection, RedisError>>>,
    broken: Arc<AtomicBool>,
    made: Instant,
}

/// What failed: reaching the server, or a call that it may have run, or the time.
enum Fault {
    Connect(RedisError),
    Call(RedisError),
    Timeout,
}

/// The calls of one operation, which end by the same time.
#[derive(Debug)]
pub(super) struct Calls<'a> {
    link: &'a Link,
    deadline: Instant,
}

impl Link {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, StoreError> {
        install_tls_provider();
        let info = url.into_connection_info().map_err(unavailable)?;
        // the protocol in which the library tells of a lost connection
        let resp3 = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(resp3)).map_err(unavailable)?;
        Ok(Self {
            client,
            timeout,
            current: Mutex::default(),
        })
    }

    /// Another connection to the same server.
    pub(super) fn another(&self) -> Self {
        Self {
            client: self.client.clone(),
            timeout: self.timeout,
            current: Mutex::default(),
        }
    }

    /// How long an operation may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Begins an operation.
    pub(super) fn calls(&self) -> Calls<'_> {
        Calls {
            link: self,
            deadline: Instant::now() + self.timeout,
        }
    }

    fn slot(&self) -> Arc<Slot> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(slot) if !slot.broken.load(Ordering::Relaxed) => Arc::clone(slot),
            _ => Arc::clone(current.insert(Arc::new(Slot::new(&self.client)))),
        }
    }
}

impl Calls<'_> {
    /// Calls a command that changes nothing but an expiry; once more if the connection broke.
    pub(super) async fn read(&self, cmd: Cmd) -> Result<Value, StoreError> {
        let [reply] = self.read_all([cmd]).await?;
        Ok(reply)
    }

    /// Calls several such commands in one pipeline.
    pub(super) async fn read_all<const N: usize>(
        &self,
        cmds: [Cmd; N],
    ) -> Result<[Value; N], StoreError> {
        let replies = self.read_many(&pipeline(cmds)).await?;
        // one reply for each command, as it was checked
        replies.try_into().map_err(|_| replies::UNKNOWN)
    }

    /// Calls as many such commands as there are.
    pub(super) async fn read_many(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        match self.call(pipeline).await {
            Err(fault) if fault.is_of_the_connection() => self.call(pipeline).await,
            result => result,
        }
        .map_err(|fault| self.error(fault))
    }

    /// Calls a command that changes a thread. It is repeated only when the server surely did not
    /// run it; what breaks after it was sent is for the caller's idempotency key to decide.
    pub(super) async fn write(&self, cmd: Cmd) -> Result<Value, StoreError> {
        let replies = self.call(&pipeline([cmd])).await;
        let reply = replies.map_err(|fault| self.error(fault))?.pop();
        reply.ok_or(replies::UNKNOWN)
    }

    /// Calls such a command, and one that only looks something up after it.
    pub(super) async fn write_and_look(
        &self,
        write: Cmd,
        look: Cmd,
    ) -> Result<[Value; 2], StoreError> {
        let replies = self.call(&pipeline([write, look])).await;
        let replies = replies.map_err(|fault| self.error(fault))?;
        replies.try_into().map_err(|_| replies::UNKNOWN)
    }

    /// Calls on the current connection. After a timeout that connection is not used again: one
    /// that has lost its other end without a word would stay so for a quarter of an hour.
    async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let slot = self.link.slot();
        let call = timeout_at(self.deadline.into(), slot.call(pipeline));
        call.await.unwrap_or_else(|_| {
            slot.broken.store(true, Ordering::Relaxed);
            Err(Fault::Timeout)
        })
    }

    fn error(&self, fault: Fault) -> StoreError {
        let is_unsure = fault.may_be_done();
        match fault {
            Fault::Timeout => StoreError::Timeout(millis(self.link.timeout)),
            Fault::Call(error) if is_unsure => StoreError::Interrupted(Box::new(error)),
            Fault::Connect(error) | Fault::Call(error) => unavailable(error),
        }
    }
}

impl Slot {
    /// A connection that is made when it is first waited for, on the runtime of who does.
    fn new(client: &Client) -> Self {
        let broken = Arc::default();
        Self {
            connection: connect(client.clone(), Arc::clone(&broken))
                .boxed()
                .shared(),
            broken,
            made: Instant::now(),
        }
    }

    async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let mut connection = self.connection().await?;
        let mut replies = send(&mut connection, pipeline).await;
        if is_missing_script(&replies) {
            replies = match load(&mut connection).await {
                Ok(()) => send(&mut connection, pipeline).await,
                Err(error) => Err(error),
            };
        }
        let replies = replies.map_err(|error| self.fault(error))?;
        if replies.len() != pipeline.len() {
            return Err(self.fault((ErrorKind::Parse, "replies are missing").into()));
        }
        Ok(replies)
    }

    async fn connection(&self) -> Result<MultiplexedConnection, Fault> {
        let connection = match self.connection.peek() {
            Some(made) => made.clone(),
            None => self.connection.clone().await,
        };
        connection.map_err(|error| {
            self.broken.store(true, Ordering::Relaxed);
            Fault::Connect(error)
        })
    }

    fn fault(&self, error: RedisError) -> Fault {
        let fault = Fault::Call(error);
        let is_useless = fault.is_of_the_role() && self.made.elapsed() > PATIENCE;
        if fault.is_of_the_connection() || is_useless {
            self.broken.store(true, Ordering::Relaxed);
        }
        fault
    }
}

impl Fault {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Connect(error) | Self::Call(error) => Some(error.kind()),
            Self::Timeout => None,
        }
    }

    fn is_of_the_connection(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::Io | ErrorKind::Parse))
    }

    /// Whether the server may have done what was sent: the connection ended before it said so, or
    /// a script failed on its way.
    fn may_be_done(&self) -> bool {
        let script = Some(ErrorKind::Server(ServerErrorKind::ResponseError));
        self.is_of_the_connection() || self.kind() == script
    }

    /// The server is not, or not yet, the one that takes writes.
    fn is_of_the_role(&self) -> bool {
        matches!(
            self.kind(),
            Some(ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            ))
        )
    }
}

fn unavailable(error: RedisError) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn is_missing_script<T>(reply: &Result<T, RedisError>) -> bool {
    let missing = ErrorKind::Server(ServerErrorKind::NoScript);
    matches!(reply, Err(error) if error.kind() == missing)
}

async fn connect(
    client: Client,
    broken: Arc<AtomicBool>,
) -> Result<MultiplexedConnection, RedisError> {
    // the server's end of the connection is noticed even when nothing is being asked
    let watch = move |push: PushInfo| {
        if push.kind == PushKind::Disconnection {
            broken.store(true, Ordering::Relaxed);
        }
        Ok::<_, RedisError>(())
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_push_sender(watch);
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    load(&mut connection).await?;
    Ok(connection)
}

pub(super) fn pipeline(cmds: impl IntoIterator<Item = Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::new();
    for cmd in cmds {
        pipeline.add_command(cmd);
    }
    pipeline
}

/// All replies, or the first that is an error.
async fn send(
    connection: &mut MultiplexedConnection,
    pipeline: &Pipeline,
) -> Result<Vec<Value>, RedisError> {
    let count = pipeline.len();
    let replies = connection.send_packed_commands(pipeline, 0, count).await?;
    replies.into_iter().map(Value::extract_error).collect()
}

async fn load(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    scripts::load_all().exec_async(connection).await
}
