use std::mem;
use std::time::Instant;

use redis::{RedisError, Value};

use super::{Command, Confirmation};

#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) commands: &'a [Command],
    pub(super) deadline: Instant,
    /// Number of leading replies that are checked: errors in them fail the call. Errors in later replies are returned.
    pub(super) checked: usize,
    /// True if the call needs a permit from the call limiter. Calls that other calls are waiting for do not need one.
    pub(super) is_limited: bool,
    /// If set, the call ends with WAIT, which waits for replicas. The last reply is the reply to WAIT.
    pub(super) confirmation: Option<&'a Confirmation>,
}

impl<'a> Call<'a> {
    /// Creates a call that fails if any reply is an error.
    pub(super) fn new(commands: &'a [Command], deadline: Instant) -> Self {
        Self {
            commands,
            deadline,
            checked: commands.len(),
            is_limited: true,
            confirmation: None,
        }
    }

    pub(super) fn unlimited(self) -> Self {
        Self {
            is_limited: false,
            ..self
        }
    }

    pub(super) fn check(&self, mut replies: Vec<Value>) -> Result<Vec<Value>, RedisError> {
        for reply in replies.iter_mut().take(self.checked) {
            *reply = mem::replace(reply, Value::Nil).extract_error()?;
        }
        Ok(replies)
    }
}
