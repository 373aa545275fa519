//! Connections that serve one call at a time.

use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use redis::Value;
use tokio::time::{sleep, timeout_at};

use super::connection::Line;
use super::outcome::until;
use super::server::Server;
use crate::store::NotAsked;
use crate::store::redis::transport::commands::Command;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::limiter::{Bounds, Turn, Turns};

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
    turns: Arc<Turns>,
    lines: Mutex<Lines>,
}

/// Those that nobody uses.
#[derive(Debug, Default)]
struct Lines {
    /// And since when; the one that was used last is the last.
    idle: Vec<(Arc<Line>, Instant)>,
    /// The one that is made, or is to be made next, and since when. All who find none idle wait for
    /// it, and one of them has it then.
    next: Option<(Arc<Line>, Instant)>,
    is_swept: bool,
}

/// A connection that nobody else uses. It is used again only by way of [`Alone::call`]: what is
/// dropped before may be in the midst of a reply.
#[derive(Debug)]
pub(crate) struct Alone<'a> {
    pool: &'a Arc<Pool>,
    line: Arc<Line>,
    _turn: Turn<'a>,
}

impl Pool {
    pub(super) fn new(server: &Arc<Server>, bounds: Bounds) -> Self {
        Self {
            server: Arc::clone(server),
            turns: server.roll.turns(Bounds {
                in_flight: MOST,
                ..bounds
            }),
            lines: Mutex::default(),
        }
    }

    /// A connection, if there is one by that time. Nothing was sent if not.
    pub(super) async fn take(self: &Arc<Self>, deadline: Instant) -> Result<Alone<'_>, Fault> {
        let left = deadline.saturating_duration_since(Instant::now());
        let by = Turns::last_of_use(deadline);
        let taken = timeout_at(by.into(), self.find(by, left.max(ATTEMPT))).await;
        taken.unwrap_or_else(|_| Err(NotAsked::Late.into()))
    }

    async fn find(self: &Arc<Self>, by: Instant, patience: Duration) -> Result<Alone<'_>, Fault> {
        let turn = match self.turns.take() {
            Some(turn) => turn,
            None => self.turns.wait(by).await?,
        };
        let alone = |line| Alone {
            pool: self,
            line,
            _turn: turn,
        };
        loop {
            let next = match self.lines().idle_or_next(&self.server, patience) {
                Found::Idle(line) => return Ok(alone(line)),
                Found::Next(line) => line,
            };
            next.ready().await?;
            if self.lines().claim(&next) {
                return Ok(alone(next));
            }
        }
    }

    /// Keeps one for the next who wants it.
    fn put_back(self: &Arc<Self>, line: Arc<Line>) {
        let mut lines = self.lines();
        lines.idle.push((line, Instant::now()));
        if !mem::replace(&mut lines.is_swept, true) {
            tokio::spawn(Self::sweep(Arc::downgrade(self)));
        }
    }

    /// Keeps none that was there with one that is of no more use.
    fn drop_with(&self, line: &Line) {
        let mut lines = self.lines();
        lines.idle.clear();
        if lines.next.is_none() {
            // who it was is known here alone: it may have to be waited for
            let next = Line::new(&self.server, Some(line));
            lines.next = Some((Arc::new(next), Instant::now()));
        }
    }

    /// Drops those that nobody uses, until there are none.
    async fn sweep(pool: Weak<Self>) {
        loop {
            sleep(UNUSED).await;
            let Some(pool) = pool.upgrade() else {
                return;
            };
            let mut lines = pool.lines();
            lines
                .idle
                .retain(|(line, since)| line.is_usable() && since.elapsed() < UNUSED);
            if lines.idle.is_empty() {
                lines.is_swept = false;
                return;
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Found {
    Idle(Arc<Line>),
    Next(Arc<Line>),
}

impl Lines {
    fn idle_or_next(&mut self, server: &Arc<Server>, patience: Duration) -> Found {
        while let Some((line, _)) = self.idle.pop() {
            if line.is_trusted(server) {
                return Found::Idle(line);
            }
        }
        match &self.next {
            Some((line, since)) if line.is_trusted(server) && since.elapsed() < patience => {
                Found::Next(Arc::clone(line))
            }
            before => {
                let before = before.as_ref().map(|(line, _)| &**line);
                let line = Arc::new(Line::new(server, before));
                self.next = Some((Arc::clone(&line), Instant::now()));
                Found::Next(line)
            }
        }
    }

    /// Whether it was still to be had, and is the caller's now.
    fn claim(&mut self, line: &Arc<Line>) -> bool {
        let is_it = |(next, _): &mut (Arc<Line>, Instant)| Arc::ptr_eq(next, line);
        self.next.take_if(is_it).is_some() && line.is_usable()
    }
}

impl Alone<'_> {
    /// Calls commands until that time; all replies, or the first that is an error of the first so
    /// many. Errors after these are among the replies.
    pub(crate) async fn call(
        self,
        commands: &[Command],
        leading: usize,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let line = Arc::clone(&self.line);
        let call = pin!(line.call_led(commands, leading, deadline));
        let replies = until(&self.pool.server, &line, call).await;
        if self.line.is_usable() {
            self.pool.put_back(self.line);
        } else {
            self.pool.drop_with(&self.line);
        }
        replies
    }
}
