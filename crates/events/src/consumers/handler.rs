use std::fmt;

use async_trait::async_trait;

use threadkeep_domain::{Event, EventTypes};

const MOST_CHARS: usize = 200;

/// Handles the events of a durable consumer: each at least once, those of one thread in order and one at a time, those of
/// different threads concurrently.
#[async_trait]
pub trait Handler: fmt::Debug + Send + Sync + 'static {
    /// Returns the wanted types, which may change. Events logged before a type was wanted are not delivered.
    fn types(&self) -> EventTypes;

    /// Handles an event. It may be a repeat with the same id, so the handler must be idempotent. After a failure, the event
    /// is retried, and later ones of its thread wait.
    async fn deliver(&self, event: &Event) -> Result<(), Failure>;
}

/// Why an event was not handled: a short text, which is stored and shown. It must contain no secrets and no data of threads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// Creates a failure; truncates `text` to 200 characters.
    #[must_use]
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string().chars().take(MOST_CHARS).collect())
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
