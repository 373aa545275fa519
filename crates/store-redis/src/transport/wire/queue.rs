use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;
use std::{fmt, mem};

use bytes::Bytes;
use redis::RedisError;
use tokio::sync::oneshot;

use super::batch::{BYTES_MAX, Batch};
use super::primary_reads::PrimaryReads;
use crate::transport::Command;
use crate::transport::fault::Fault;

/// Unsent calls. Plain calls are sent first, in order, followed by batched and guarded calls. The order of calls can
/// change in this way, because each caller waits only for its own reply.
#[derive(Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Default)]
struct State {
    calls: Calls,
    batches: Vec<Batch>,
    guarded: PrimaryReads,
    /// The driver's waker while the driver sleeps.
    sender: Option<Waker>,
    earliest: Option<Instant>,
    /// The reason why the connection ended. Further calls fail with this error.
    end: Option<RedisError>,
    is_abandoned: bool,
}

#[derive(Default)]
pub(super) struct Calls {
    pub(super) bytes: Vec<u8>,
    pub(super) waiters: Vec<Waiter>,
}

/// A caller that is waiting for replies. After a missed deadline, `sender` is `None`, and the replies are discarded.
pub(super) struct Waiter {
    pub(super) expected: ReplyKind,
    deadline: Option<Instant>,
    sender: Option<oneshot::Sender<Result<Bytes, Fault>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// The number of replies for one caller.
    Replies(usize),
    /// The reply to a batch of this many callers: an array with one element per caller, or one error for all callers.
    OfAll(usize),
    /// The reply to a guard. If this reply is an error, it replaces the replies to the given number of callers.
    Guard(usize),
}

pub(super) enum Taken {
    Calls(Option<Instant>),
    Nothing,
    /// All callers are gone, so no further call can follow.
    Abandoned,
}

impl Queue {
    /// Adds a call. The receiver gets the replies, or an error if the connection ends before they arrive.
    pub(super) fn push(
        &self,
        commands: &[Command],
        deadline: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Bytes, Fault>>, Fault> {
        debug_assert!(!commands.is_empty(), "nothing would ever be answered");
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if let Some(error) = &state.end {
            return Err(Fault::Call(error.clone()));
        }
        let waiter = Waiter {
            expected: ReplyKind::Replies(commands.len()),
            deadline,
            sender: Some(sender),
        };
        state.add(commands, waiter);
        state.earliest = earlier(state.earliest, deadline);
        let sleeper = state.sender.take();
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(receiver)
    }

    /// Swaps the queued calls with `calls`, which must be empty. If no call is queued, the next call wakes the driver.
    pub(super) fn take(&self, calls: &mut Calls, waker: &Waker) -> Taken {
        let mut state = self.lock();
        state.drain_batches();
        if !state.calls.bytes.is_empty() {
            mem::swap(calls, &mut state.calls);
            return Taken::Calls(state.earliest.take());
        }
        if state.is_abandoned {
            return Taken::Abandoned;
        }
        match &mut state.sender {
            Some(sender) => sender.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Taken::Nothing
    }

    /// Returns whether all callers are gone. If not, the driver is woken when the last caller is gone, or when another
    /// call is queued.
    pub(super) fn is_abandoned(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        state.sender = Some(waker.clone());
        state.is_abandoned
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.lock().earliest
    }

    pub(super) fn give_up_late(&self, now: Instant) {
        let mut state = self.lock();
        state.drain_batches();
        state.earliest = give_up_late(&mut state.calls.waiters, now);
    }

    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        let sleeper = state.sender.take();
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Rejects further calls, and fails unsent calls.
    pub(super) fn end(&self, error: &RedisError) {
        let mut state = self.lock();
        state.end.get_or_insert_with(|| error.clone());
        state.drain_batches();
        let calls = mem::take(&mut state.calls);
        drop(state);
        for waiter in calls.waiters {
            waiter.answer(Err(Fault::Call(error.clone())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, commands: &[Command], waiter: Waiter) {
        if let [command] = commands
            && let Some(call) = command.one_of_many()
            && call.arguments.len() <= BYTES_MAX
        {
            let index = self.batches.iter().position(|batch| batch.is_of(&call));
            let index = index.unwrap_or_else(|| {
                self.batches.push(Batch::of(&call));
                self.batches.len() - 1
            });
            self.batches[index].add(&call, waiter, &mut self.calls);
            return;
        }
        if commands.first().is_some_and(Command::is_guarded) {
            self.guarded.add(commands, waiter);
            return;
        }
        for command in commands {
            command.write(&mut self.calls.bytes);
        }
        self.calls.waiters.push(waiter);
    }

    fn drain_batches(&mut self) {
        for batch in &mut self.batches {
            batch.add_to(&mut self.calls);
        }
        self.guarded.add_to(&mut self.calls);
    }
}

impl Waiter {
    pub(super) fn without_caller(expected: ReplyKind) -> Self {
        Self {
            expected,
            deadline: None,
            sender: None,
        }
    }

    pub(super) fn answer(self, replies: Result<Bytes, Fault>) {
        if let Some(sender) = self.sender {
            sender.send(replies).ok();
        }
    }

    /// Returns the deadline, unless it was already missed.
    fn due(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.sender.is_some())
    }
}

pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Fails calls that have missed their deadline. Returns the earliest deadline of the remaining calls.
pub(super) fn give_up_late<'a>(
    waiters: impl IntoIterator<Item = &'a mut Waiter>,
    now: Instant,
) -> Option<Instant> {
    let mut earliest = None;
    for waiter in waiters {
        match waiter.due() {
            Some(due) if due <= now => {
                if let Some(sender) = waiter.sender.take() {
                    sender.send(Err(Fault::Timeout)).ok();
                }
            }
            due => earliest = earlier(earliest, due),
        }
    }
    earliest
}

/// Omits state and passwords.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
