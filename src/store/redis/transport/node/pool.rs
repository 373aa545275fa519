//! Connections that serve one call at a time.

use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use redis::Value;
use tokio::time::{sleep, timeout_at};

use super::connection::Connection;
use super::outcome::until;
use super::server::Server;
use crate::store::NotAsked;
use crate::store::redis::transport::commands::Command;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::limiter::{Bounds, CallLimiter, Permit};

/// Connections of one user of the store to one server, at most.
const MOST: usize = 16;
/// How long an attempt to make one goes on at least, for who comes later when others have given up.
const ATTEMPT: Duration = Duration::from_secs(1);
/// How long one stays that nobody uses.
const UNUSED: Duration = Duration::from_secs(10);

/// Connections of one server that are made when they are wanted, one after the other: a server that
/// hangs gets one for each time that an operation may take, and one that comes back no storm of them.
#[derive(Debug)]
pub(super) struct Pool {
    server: Arc<Server>,
    limiter: Arc<CallLimiter>,
    connections: Mutex<Connections>,
}

/// Those that nobody uses.
#[derive(Debug, Default)]
struct Connections {
    /// And since when; the one that was used last is the last.
    idle: Vec<(Arc<Connection>, Instant)>,
    /// The one that is made, or is to be made next, and since when. All who find none idle wait for
    /// it, and one of them has it then.
    next: Option<(Arc<Connection>, Instant)>,
    is_swept: bool,
}

/// A connection that nobody else uses. It is used again only by way of [`ExclusiveConnection::call`]: what is
/// dropped before may be in the midst of a reply.
#[derive(Debug)]
pub(crate) struct ExclusiveConnection<'a> {
    pool: &'a Arc<Pool>,
    connection: Arc<Connection>,
    _permit: Permit<'a>,
}

impl Pool {
    pub(super) fn new(server: &Arc<Server>, bounds: Bounds) -> Self {
        Self {
            server: Arc::clone(server),
            limiter: server.registry.limiter(Bounds {
                in_flight: MOST,
                ..bounds
            }),
            connections: Mutex::default(),
        }
    }

    /// A connection, if there is one by that time. Nothing was sent if not.
    pub(super) async fn take(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<ExclusiveConnection<'_>, Fault> {
        let left = deadline.saturating_duration_since(Instant::now());
        let by = CallLimiter::last_of_use(deadline);
        let taken = timeout_at(by.into(), self.find(by, left.max(ATTEMPT))).await;
        taken.unwrap_or_else(|_| Err(NotAsked::Late.into()))
    }

    async fn find(
        self: &Arc<Self>,
        by: Instant,
        patience: Duration,
    ) -> Result<ExclusiveConnection<'_>, Fault> {
        let permit = match self.limiter.take() {
            Some(permit) => permit,
            None => self.limiter.wait(by).await?,
        };
        let exclusive = |connection| ExclusiveConnection {
            pool: self,
            connection,
            _permit: permit,
        };
        loop {
            let next = match self.connections().idle_or_next(&self.server, patience) {
                Found::Idle(connection) => return Ok(exclusive(connection)),
                Found::Next(connection) => connection,
            };
            next.ready().await?;
            if self.connections().claim(&next) {
                return Ok(exclusive(next));
            }
        }
    }

    /// Keeps one for the next who wants it.
    fn put_back(self: &Arc<Self>, connection: Arc<Connection>) {
        let mut connections = self.connections();
        connections.idle.push((connection, Instant::now()));
        if !mem::replace(&mut connections.is_swept, true) {
            tokio::spawn(Self::sweep(Arc::downgrade(self)));
        }
    }

    /// Keeps none that was there with one that is of no more use.
    fn drop_with(&self, connection: &Connection) {
        let mut connections = self.connections();
        connections.idle.clear();
        if connections.next.is_none() {
            // who it was is known here alone: it may have to be waited for
            let next = Connection::new(&self.server, Some(connection));
            connections.next = Some((Arc::new(next), Instant::now()));
        }
    }

    /// Drops those that nobody uses, until there are none.
    async fn sweep(pool: Weak<Self>) {
        loop {
            sleep(UNUSED).await;
            let Some(pool) = pool.upgrade() else {
                return;
            };
            let mut connections = pool.connections();
            connections
                .idle
                .retain(|(connection, since)| connection.is_usable() && since.elapsed() < UNUSED);
            if connections.idle.is_empty() {
                connections.is_swept = false;
                return;
            }
        }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

enum Found {
    Idle(Arc<Connection>),
    Next(Arc<Connection>),
}

impl Connections {
    fn idle_or_next(&mut self, server: &Arc<Server>, patience: Duration) -> Found {
        while let Some((connection, _)) = self.idle.pop() {
            if connection.is_trusted(server) {
                return Found::Idle(connection);
            }
        }
        match &self.next {
            Some((connection, since))
                if connection.is_trusted(server) && since.elapsed() < patience =>
            {
                Found::Next(Arc::clone(connection))
            }
            before => {
                let before = before.as_ref().map(|(connection, _)| &**connection);
                let connection = Arc::new(Connection::new(server, before));
                self.next = Some((Arc::clone(&connection), Instant::now()));
                Found::Next(connection)
            }
        }
    }

    /// Whether it was still to be had, and is the caller's now.
    fn claim(&mut self, connection: &Arc<Connection>) -> bool {
        let is_it = |(next, _): &mut (Arc<Connection>, Instant)| Arc::ptr_eq(next, connection);
        self.next.take_if(is_it).is_some() && connection.is_usable()
    }
}

impl ExclusiveConnection<'_> {
    /// Calls commands until that time; all replies, or the first that is an error of the first so
    /// many. Errors after these are among the replies.
    pub(crate) async fn call(
        self,
        commands: &[Command],
        leading: usize,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let connection = Arc::clone(&self.connection);
        let call = pin!(connection.call_led(commands, leading, deadline));
        let replies = until(&self.pool.server, &connection, call).await;
        if self.connection.is_usable() {
            self.pool.put_back(self.connection);
        } else {
            self.pool.drop_with(&self.connection);
        }
        replies
    }
}
