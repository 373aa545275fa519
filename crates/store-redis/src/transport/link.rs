use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{ConnectionInfo, RedisError, Value};
use tokio::runtime::Handle;

use super::cluster::{Cluster, Repeat};
use super::node::{CallLimits, ConnectionRegistry, Fault, Mode, Node, Origin, Sentinels, Server};
use super::{Address, Call, Command, Confirmation, Fields, command, marker, replies};
use threadkeep_store::{Links, StoreError, millis};

#[derive(Debug)]
pub(crate) struct Link {
    form: Form,
    timeout: Duration,
    confirmation: Option<Confirmation>,
    bounds: CallLimits,
    registry: Arc<ConnectionRegistry>,
}

#[derive(Debug)]
enum Form {
    /// A single server, or a master that sentinels can replace.
    Node(Node),
    Cluster(Cluster),
}

/// The calls of one operation, which share a deadline.
#[derive(Debug)]
pub(crate) struct Calls<'a> {
    link: &'a Link,
    deadline: Instant,
}

impl Link {
    pub(crate) fn new(
        address: Address,
        timeout: Duration,
        bounds: CallLimits,
    ) -> Result<Self, StoreError> {
        #[cfg(feature = "tls")]
        threadkeep_tls::install_tls_provider();
        let registry = Arc::<ConnectionRegistry>::default();
        let node = |origin| {
            let server = Arc::new(Server::new(origin, timeout, Arc::clone(&registry)));
            Form::Node(Node::new(server, bounds, Mode::Shared(None)))
        };
        let form = match address {
            Address::Server(endpoint) => node(Origin::Server(endpoint)),
            Address::Sentinels {
                sentinels,
                master,
                server,
            } => {
                let sentinels = Sentinels::new(sentinels, master, server, timeout / 4);
                node(Origin::Sentinels(sentinels))
            }
            Address::Cluster { seeds, node } => Form::Cluster(Cluster::new(
                seeds,
                node,
                timeout,
                bounds,
                Arc::clone(&registry),
            )),
        };
        Ok(Self {
            form,
            timeout,
            confirmation: None,
            bounds,
            registry,
        })
    }

    /// Opens separate connections for one worker.
    pub(crate) fn another(&self) -> Self {
        self.bounded(self.bounds, Mode::Own)
    }

    /// Opens separate connections that several threads share. `runtime` drives the connections.
    pub(crate) fn driven_by(&self, runtime: Handle) -> Self {
        self.bounded(self.bounds, Mode::Shared(Some(runtime)))
    }

    /// Opens connections for background tasks, which limit themselves.
    pub(crate) fn background(&self) -> Self {
        self.bounded(CallLimits::NONE, Mode::Shared(None))
    }

    /// Opens connections for administration, such as health checks. Each connection runs one call at a time.
    pub(crate) fn administration(&self) -> Self {
        self.bounded(CallLimits::NONE, Mode::Pooled)
    }

    fn bounded(&self, bounds: CallLimits, mode: Mode) -> Self {
        let form = match &self.form {
            Form::Node(node) => {
                let server = Arc::clone(node.server());
                Form::Node(Node::new(server, bounds, mode))
            }
            Form::Cluster(cluster) => Form::Cluster(cluster.another(bounds, mode)),
        };
        Self {
            form,
            timeout: self.timeout,
            confirmation: self.confirmation.clone(),
            bounds,
            registry: Arc::clone(&self.registry),
        }
    }

    pub(crate) fn confirming(self, confirmation: Option<Confirmation>) -> Self {
        Self {
            confirmation,
            ..self
        }
    }

    pub(crate) fn links(&self) -> Links {
        let open = match &self.form {
            Form::Node(node) => node.server().is_open().into(),
            Form::Cluster(cluster) => cluster.open(),
        };
        Links {
            open,
            ..self.registry.count()
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.registry.epoch()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.form, Form::Cluster(_))
    }

    /// Returns the connection settings of a server that subscribers can use. Fails if no sentinel can name a server.
    pub(crate) async fn locate(&self) -> Result<ConnectionInfo, RedisError> {
        let endpoint = match &self.form {
            Form::Node(node) => node.server().locate().await?,
            Form::Cluster(cluster) => cluster.any_endpoint(),
        };
        endpoint.for_library().await
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn calls(&self) -> Calls<'_> {
        Calls {
            link: self,
            deadline: Instant::now() + self.timeout,
        }
    }
}

impl Calls<'_> {
    /// Sends a command that changes at most an expiry time. Retries the command once if the connection breaks.
    pub(crate) async fn read(&self, cmd: Command) -> Result<Value, StoreError> {
        let [reply] = self.read_all([cmd]).await?;
        Ok(reply)
    }

    /// Sends an optional read: the caller can continue without the reply. In a cluster, the read therefore takes at
    /// most a quarter of the remaining time, and does not wait for a server known to be unavailable.
    pub(crate) async fn peek(&self, cmd: Command) -> Result<Value, StoreError> {
        let Form::Cluster(cluster) = &self.link.form else {
            return self.read(cmd).await;
        };
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let replies = cluster.call_all([cmd], Instant::now() + remaining / 4, Repeat::Never);
        let mut replies = replies.await.map_err(|fault| self.error(fault))?;
        replies.pop().ok_or(replies::UNKNOWN)
    }

    /// Returns whether one server can be unavailable while others are available.
    pub(crate) fn has_several_servers(&self) -> bool {
        self.link.is_cluster()
    }

    pub(crate) async fn read_all<const N: usize>(
        &self,
        cmds: [Command; N],
    ) -> Result<[Value; N], StoreError> {
        let replies = match &self.link.form {
            Form::Node(node) => self.read_from(node, &cmds).await,
            Form::Cluster(cluster) => cluster.call_all(cmds, self.deadline, Repeat::Once).await,
        };
        // the number of replies was checked
        let replies = replies.map_err(|fault| self.error(fault))?;
        replies.try_into().map_err(|_| replies::UNKNOWN)
    }

    /// Sends `touch`, a script that returns a number, then HGETALL. The caller must check the number before the fields.
    pub(crate) async fn read_fields(
        &self,
        touch: Command,
        fields: Command,
    ) -> Result<(i64, Fields), StoreError> {
        let Form::Node(node) = &self.link.form else {
            let [touched, fields] = self.read_all([touch, fields]).await?;
            return Fields::read(&touched, fields);
        };
        let commands = [touch, fields];
        let call = Call::new(&commands, self.deadline);
        let replies = match node.call_raw(&call).await {
            Ok(replies) => match replies.as_ref().and_then(Fields::touched) {
                Some(fields) => return Ok(fields),
                // this retry handles errors and lost scripts
                None => Box::pin(self.read_from(node, &commands)).await,
            },
            Err(fault) if fault.is_of_the_connection() => node.call(call).await,
            Err(fault) => Err(fault),
        };
        let replies = replies.map_err(|fault| self.error(fault))?;
        let [touched, fields] = replies.try_into().map_err(|_| replies::UNKNOWN)?;
        Fields::read(&touched, fields)
    }

    pub(crate) async fn read_many(
        &self,
        cmds: impl IntoIterator<Item = Command>,
    ) -> Result<Vec<Value>, StoreError> {
        let replies = match &self.link.form {
            Form::Node(node) => {
                let cmds: Vec<_> = cmds.into_iter().collect();
                self.read_from(node, &cmds).await
            }
            Form::Cluster(cluster) => cluster.read_many(cmds, self.deadline).await,
        };
        replies.map_err(|fault| self.error(fault))
    }

    /// Sends a read to every server that accepts writes.
    pub(crate) async fn read_everywhere(&self, cmd: Command) -> Result<Vec<Value>, StoreError> {
        let replies = match &self.link.form {
            Form::Node(node) => self.read_from(node, &[cmd]).await,
            Form::Cluster(cluster) => cluster.read_everywhere(&cmd, self.deadline).await,
        };
        replies.map_err(|fault| self.error(fault))
    }

    /// Asks every writable server for its time, and then sends the reads. Returns the times and the replies.
    pub(crate) async fn read_many_timed(
        &self,
        cmds: impl IntoIterator<Item = Command>,
    ) -> Result<(Vec<Value>, Vec<Value>), StoreError> {
        let time = command("TIME");
        let Form::Node(node) = &self.link.form else {
            let times = self.read_everywhere(time).await?;
            return Ok((times, self.read_many(cmds).await?));
        };
        let cmds: Vec<_> = std::iter::once(time).chain(cmds).collect();
        let replies = self.read_from(node, &cmds).await;
        let mut times = replies.map_err(|fault| self.error(fault))?;
        let replies = times.split_off(1);
        Ok((times, replies))
    }

    /// Checks that at least one server accepts writes. Sends only as many of the `probes` (idempotent writes) as
    /// needed.
    pub(crate) async fn probe(
        &self,
        mut probes: impl Iterator<Item = Command>,
    ) -> Result<(), StoreError> {
        let answered = match &self.link.form {
            Form::Node(node) => {
                let probe = probes.next().ok_or(replies::UNKNOWN)?;
                self.read_from(node, &[probe]).await.map(drop)
            }
            Form::Cluster(cluster) => cluster.probe(probes, self.deadline).await,
        };
        answered.map_err(|fault| self.error(fault))
    }

    /// Sends a write. Repeats the write only if the server did not run it. If the connection breaks after the write was
    /// sent, the caller must retry with an idempotency key.
    pub(crate) async fn write(&self, cmd: Command) -> Result<Value, StoreError> {
        let replies = match &self.link.form {
            Form::Node(node) => self.write_to(node, [cmd]).await,
            Form::Cluster(cluster) => {
                let confirmation = self.link.confirmation.as_ref();
                cluster.write(cmd, self.deadline, confirmation).await
            }
        };
        let reply = replies.map_err(|fault| self.error(fault))?.pop();
        reply.ok_or(replies::UNKNOWN)
    }

    pub(crate) async fn write_idempotent(&self, cmd: Command) -> Result<Value, StoreError> {
        match &self.link.confirmation {
            None => self.read(cmd).await,
            Some(_) => self.write(cmd).await,
        }
    }

    /// If the store is configured to wait for replicas, waits until they have received all writes to the slot of `key`.
    pub(crate) async fn confirm(&self, key: &str) -> Result<(), StoreError> {
        match &self.link.confirmation {
            None => Ok(()),
            Some(_) => self.write(marker(key.as_bytes())).await.map(drop),
        }
    }

    pub(crate) async fn write_then_read(
        &self,
        write: Command,
        read: Command,
    ) -> Result<[Value; 2], StoreError> {
        let Form::Node(node) = &self.link.form else {
            let written = self.write(write).await?;
            let reply = self.read(read).await.map_err(|error| match error {
                // the write was done
                StoreError::Unavailable(source) => StoreError::Interrupted(source),
                error => error,
            });
            return Ok([written, reply?]);
        };
        let replies = self.write_to(node, [write, read]).await;
        let replies = replies.map_err(|fault| self.error(fault))?;
        replies.try_into().map_err(|_| replies::UNKNOWN)
    }

    async fn read_from(&self, node: &Node, commands: &[Command]) -> Result<Vec<Value>, Fault> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new(commands, self.deadline);
        match node.call(call).await {
            Err(fault) if fault.is_of_the_connection() || fault.is_read_only_error() => {
                node.call(call).await
            }
            result => result,
        }
    }

    /// Sends writes to a server. If the server rejects them because it is read-only, sends them again, to its
    /// successor.
    async fn write_to<const N: usize>(
        &self,
        node: &Node,
        cmds: [Command; N],
    ) -> Result<Vec<Value>, Fault> {
        let deadline = self.deadline;
        if let Some(confirmation) = &self.link.confirmation {
            return match node.write_confirmed(confirmation, &cmds, deadline).await {
                Err(fault) if fault.is_read_only_error() => {
                    node.write_confirmed(confirmation, &cmds, deadline).await
                }
                result => result,
            };
        }
        let call = Call::new(&cmds, deadline);
        match node.call(call).await {
            Err(fault) if fault.is_read_only_error() => node.call(call).await,
            result => result,
        }
    }

    fn error(&self, fault: Fault) -> StoreError {
        let is_unsure = fault.may_be_done();
        if fault.is_full() {
            return StoreError::Full;
        }
        match fault {
            Fault::Timeout => StoreError::Timeout(millis(self.link.timeout)),
            Fault::Late(error) => StoreError::Interrupted(Box::new(error)),
            Fault::Call(error) if is_unsure => StoreError::Interrupted(Box::new(error)),
            Fault::Connect(error) | Fault::Call(error) => unavailable(error),
            Fault::Unconfirmed { confirmed, wanted } => {
                StoreError::Unconfirmed { confirmed, wanted }
            }
            Fault::Refused { why, .. } => {
                self.link.registry.refused(&why);
                StoreError::Unavailable(Box::new(why))
            }
        }
    }
}

fn unavailable(error: RedisError) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
