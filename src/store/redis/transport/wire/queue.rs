//! What is called, until it is sent.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;
use std::{fmt, mem};

use bytes::Bytes;
use redis::RedisError;
use tokio::sync::oneshot;

use crate::store::redis::transport::commands::Command;

/// Commands and who waits for their replies.
#[derive(Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Default)]
struct State {
    calls: Calls,
    /// The task that sends, while it sleeps.
    sender: Option<Waker>,
    /// The first time by which one of the calls has to be answered.
    earliest: Option<Instant>,
    /// Why nothing more is sent.
    end: Option<RedisError>,
    is_left: bool,
}

/// Calls in their order.
#[derive(Default)]
pub(super) struct Calls {
    /// As they are sent.
    pub(super) bytes: Vec<u8>,
    pub(super) waiters: Vec<Waiter>,
}

/// Who waits for so many replies, and until when; who was told that it is late waits no more, and
/// its replies are still to come.
pub(super) struct Waiter {
    pub(super) replies: usize,
    deadline: Option<Instant>,
    sender: Option<oneshot::Sender<Result<Bytes, Failure>>>,
}

/// Why there are no replies.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The time is over.
    Late,
    /// The connection is.
    Broken(RedisError),
}

/// What a sender finds.
pub(super) enum Taken {
    /// And the first time by which one of them has to be answered.
    Calls(Option<Instant>),
    Nothing,
    /// Nor will there ever be more.
    Left,
}

impl Queue {
    /// Adds commands. Their replies come unless the connection ends before.
    pub(super) fn call(
        &self,
        commands: &[Command],
        deadline: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Bytes, Failure>>, RedisError> {
        debug_assert!(!commands.is_empty(), "nothing would ever be answered");
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if let Some(error) = &state.end {
            return Err(error.clone());
        }
        for command in commands {
            command.write(&mut state.calls.bytes);
        }
        state.calls.waiters.push(Waiter {
            replies: commands.len(),
            deadline,
            sender: Some(sender),
        });
        state.earliest = earlier(state.earliest, deadline);
        let sleeper = state.sender.take();
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(receiver)
    }

    /// Puts what was called into the place of `calls`, which are empty. If there is nothing, who
    /// sends is woken when there is.
    pub(super) fn take(&self, calls: &mut Calls, waker: &Waker) -> Taken {
        let mut state = self.lock();
        if !state.calls.bytes.is_empty() {
            mem::swap(calls, &mut state.calls);
            return Taken::Calls(state.earliest.take());
        }
        if state.is_left {
            return Taken::Left;
        }
        match &mut state.sender {
            Some(sender) => sender.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Taken::Nothing
    }

    /// Whether nobody is left who calls. If somebody is, who sends is woken when that ends, or when
    /// there is more to send.
    pub(super) fn is_left(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        state.sender = Some(waker.clone());
        state.is_left
    }

    /// The first time by which a call that was not taken has to be answered.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.lock().earliest
    }

    /// Tells the calls that were not taken, and whose time is over, that they are late.
    pub(super) fn give_up_late(&self, now: Instant) {
        let mut state = self.lock();
        state.earliest = give_up_late(&mut state.calls.waiters, now);
    }

    /// Nobody is left who calls.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.is_left = true;
        let sleeper = state.sender.take();
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Whether nothing more is sent.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Takes no more calls, and tells those that were not sent why.
    pub(super) fn end(&self, error: &RedisError) {
        let mut state = self.lock();
        state.end.get_or_insert_with(|| error.clone());
        let calls = mem::take(&mut state.calls);
        drop(state);
        for waiter in calls.waiters {
            waiter.answer(Err(Failure::Broken(error.clone())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Hands over the replies, to nobody if they are waited for no more.
    pub(super) fn answer(self, replies: Result<Bytes, Failure>) {
        if let Some(sender) = self.sender {
            sender.send(replies).ok();
        }
    }

    /// When it has to be answered, unless that was told.
    fn due(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.sender.is_some())
    }
}

/// The earlier of two times, if there are any.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Tells those whose time is over that they are late; when the first of the others will be.
pub(super) fn give_up_late<'a>(
    waiters: impl IntoIterator<Item = &'a mut Waiter>,
    now: Instant,
) -> Option<Instant> {
    let mut earliest = None;
    for waiter in waiters {
        match waiter.due() {
            Some(due) if due <= now => {
                if let Some(sender) = waiter.sender.take() {
                    sender.send(Err(Failure::Late)).ok();
                }
            }
            due => earliest = earlier(earliest, due),
        }
    }
    earliest
}

/// What was called is nobody else's to see.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
