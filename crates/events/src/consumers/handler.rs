use std::fmt;

use async_trait::async_trait;

use threadkeep_domain::{Event, EventTypes};

const CHARS_MAX: usize = 200;

/// Handles the events of a durable consumer. Each event is delivered at least once. Events of one thread are delivered
/// in order, one at a time. Events of different threads are delivered concurrently.
#[async_trait]
pub trait Handler: fmt::Debug + Send + Sync + 'static {
    /// Returns the event types to deliver. The result may change between calls. If a type is added, older events of
    /// that type are not delivered.
    fn types(&self) -> EventTypes;

    /// Handles an event. The handler must be idempotent, because an event can be delivered again with the same id.
    /// After a failure, the event is retried, and later events of its thread wait.
    async fn deliver(&self, event: &Event) -> Result<(), Failure>;
}

/// The reason for a failed delivery. The text is stored and shown, so it must not contain secrets or thread data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// Creates a failure with the first 200 characters of `text`.
    #[must_use]
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string().chars().take(CHARS_MAX).collect())
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
