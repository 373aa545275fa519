//! What is called, until it is sent.

use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use redis::RedisError;
use tokio::sync::oneshot;

use crate::store::redis::commands::Command;

/// Commands and who waits for their replies.
#[derive(Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Default)]
struct State {
    calls: Calls,
    /// The task that sends, while it sleeps.
    sender: Option<Waker>,
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

/// Who waits for so many replies.
pub(super) struct Waiter {
    pub(super) replies: usize,
    sender: oneshot::Sender<Result<Bytes, RedisError>>,
}

/// What a sender finds.
pub(super) enum Taken {
    Calls,
    Nothing,
    /// Nor will there ever be more.
    Left,
}

impl Queue {
    /// Adds commands. Their replies come unless the connection ends before.
    pub(super) fn call(
        &self,
        commands: &[Command],
    ) -> Result<oneshot::Receiver<Result<Bytes, RedisError>>, RedisError> {
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
            sender,
        });
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
            return Taken::Calls;
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

    /// Whether nobody is left who calls. If somebody is, who sends is woken when that ends.
    pub(super) fn is_left(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        state.sender = Some(waker.clone());
        state.is_left
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
            waiter.answer(Err(error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Hands over the replies, to nobody if they are waited for no more.
    pub(super) fn answer(self, replies: Result<Bytes, RedisError>) {
        self.sender.send(replies).ok();
    }
}

/// What was called is nobody else's to see.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
