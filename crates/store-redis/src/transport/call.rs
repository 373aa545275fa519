//! Calls to one server, from the operation down to the connection.

use std::mem;
use std::time::Instant;

use redis::{RedisError, Value};

use super::{Command, Confirmation};

/// Commands that are sent to one server together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) commands: &'a [Command],
    pub(super) deadline: Instant,
    /// How many of the first replies fail the call if they are errors. Others are errors among the
    /// replies.
    pub(super) checked: usize,
    /// Whether it needs a permit. Calls that others wait for need none.
    pub(super) is_limited: bool,
    /// Whether replicas are waited for after the commands. The reply to that comes last.
    pub(super) confirmation: Option<&'a Confirmation>,
}

impl<'a> Call<'a> {
    /// A call that fails when any reply is an error.
    pub(super) fn new(commands: &'a [Command], deadline: Instant) -> Self {
        Self {
            commands,
            deadline,
            checked: commands.len(),
            is_limited: true,
            confirmation: None,
        }
    }

    /// The same without a permit.
    pub(super) fn unlimited(self) -> Self {
        Self {
            is_limited: false,
            ..self
        }
    }

    /// All replies, or the first error among those that are checked.
    pub(super) fn check(&self, mut replies: Vec<Value>) -> Result<Vec<Value>, RedisError> {
        for reply in replies.iter_mut().take(self.checked) {
            *reply = mem::replace(reply, Value::Nil).extract_error()?;
        }
        Ok(replies)
    }
}
