use std::mem;
use std::time::Instant;

use redis::{RedisError, Value};

use super::{Command, Confirmation};

#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) commands: &'a [Command],
    pub(super) deadline: Instant,
    /// Number of leading replies whose errors fail the call. Later errors are returned as replies.
    pub(super) checked: usize,
    /// Whether the call needs a permit. Calls that others wait for need none.
    pub(super) is_limited: bool,
    /// If set, waits for replicas after the commands. The reply to WAIT comes last.
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
