//! A connection that comes back by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisError,
    ServerErrorKind, Value,
};
use tokio::sync::OnceCell;

use super::scripts;
use crate::store::StoreError;

/// One multiplexed connection, made at its first use on the runtime that uses it, and made anew
/// after it broke. The library is told not to time out or retry: both are decided here.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    timeout: Duration,
    current: Mutex<Arc<Slot>>,
}

/// A connection and whether it is known to be of no more use.
#[derive(Debug, Default)]
struct Slot {
    connection: OnceCell<MultiplexedConnection>,
    broken: Arc<AtomicBool>,
}

/// What failed: reaching the server, or a call that it may have run.
enum Fault {
    Connect(RedisError),
    Call(RedisError),
}

impl Link {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, StoreError> {
        install_tls_provider();
        let client = Client::open(with_resp3(url)).map_err(unavailable)?;
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
        let pipeline = pipeline(cmds);
        let call = async {
            match self.call(&pipeline).await {
                Err(fault) if fault.is_of_the_connection() => self.call(&pipeline).await,
                result => result,
            }
        };
        self.within(call).await
    }

    /// Calls a command that changes a thread. It is repeated only when the server surely did not
    /// run it; what breaks after it was sent is for the caller's idempotency key to decide.
    pub(super) async fn write(&self, cmd: Cmd) -> Result<Value, StoreError> {
        let [reply] = self.within(self.call(&pipeline([cmd]))).await?;
        Ok(reply)
    }

    async fn call<const N: usize>(&self, pipeline: &Pipeline) -> Result<[Value; N], Fault> {
        let (slot, mut connection) = self.connection().await?;
        let mut replies = send(&mut connection, pipeline).await;
        if is_missing_script(&replies) {
            replies = match load(&mut connection).await {
                Ok(()) => send(&mut connection, pipeline).await,
                Err(error) => Err(error),
            };
        }
        let replies = replies.map_err(|error| slot.fault(error))?;
        // one reply for each command is what the protocol promises
        <[Value; N]>::try_from(replies)
            .map_err(|_| slot.fault((ErrorKind::Parse, "replies are missing").into()))
    }

    /// The connection; of those who find none, one makes it and the others wait for that.
    async fn connection(&self) -> Result<(Arc<Slot>, MultiplexedConnection), Fault> {
        let slot = self.slot();
        let connection = slot
            .connection
            .get_or_try_init(|| connect(&self.client, Arc::clone(&slot.broken)))
            .await
            .map_err(Fault::Connect)?
            .clone();
        Ok((slot, connection))
    }

    fn slot(&self) -> Arc<Slot> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.broken.load(Ordering::Relaxed) {
            *current = Arc::default();
        }
        Arc::clone(&current)
    }

    /// Bounds a call. After a timeout the connection is not used again: a link that has lost its
    /// other end without a word would stay so for a quarter of an hour.
    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(result) => result.map_err(StoreError::from),
            Err(_) => {
                self.slot().broken.store(true, Ordering::Relaxed);
                Err(StoreError::Timeout(self.timeout.as_millis() as u64))
            }
        }
    }
}

impl Slot {
    fn fault(&self, error: RedisError) -> Fault {
        let fault = Fault::Call(error);
        if fault.is_of_the_connection() || fault.is_of_the_role() {
            self.broken.store(true, Ordering::Relaxed);
        }
        fault
    }
}

impl Fault {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Connect(error) | Self::Call(error) => error.kind(),
        }
    }

    fn is_of_the_connection(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io | ErrorKind::Parse)
    }

    /// The server is not, or not yet, the one that takes writes.
    fn is_of_the_role(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            )
        )
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        let is_cut = fault.is_of_the_connection();
        match fault {
            Fault::Call(error) if is_cut => Self::Interrupted(Box::new(error)),
            // what the server answers with an error it has not done
            Fault::Connect(error) | Fault::Call(error) => unavailable(error),
        }
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
    client: &Client,
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

fn pipeline<const N: usize>(cmds: [Cmd; N]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(N);
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

/// Asks for the protocol in which the library tells of a lost connection.
fn with_resp3(url: &str) -> String {
    if url.contains("protocol=") {
        return url.to_owned();
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}protocol=resp3")
}

/// `rediss://` needs a cryptography provider; one that the process has chosen before stays.
fn install_tls_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}
