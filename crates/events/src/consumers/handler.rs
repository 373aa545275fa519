//! The handler of a durable consumer.

use std::fmt;

use async_trait::async_trait;

use threadkeep_domain::{Event, EventTypes};

/// Characters of the text of a failure that are kept.
const MOST_CHARS: usize = 200;

/// Takes the events of a durable consumer: each at least once, those of a thread in order and one
/// at a time, those of several threads side by side.
#[async_trait]
pub trait Handler: fmt::Debug + Send + Sync + 'static {
    /// The types of events that it wants, which may change. Events from before it wanted them are not delivered.
    fn types(&self) -> EventTypes;

    /// Takes an event. It may be a repeat, recognized by its id: the handler has to be idempotent.
    ///
    /// # Errors
    /// [`Failure`]: the event is retried, and later ones of its thread wait.
    async fn deliver(&self, event: &Event) -> Result<(), Failure>;
}

/// The reason why an event was not handled: a short text, which is stored and shown. It must
/// contain no secret and no data of a thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// A failure with this text, cut after 200 characters.
    #[must_use]
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string().chars().take(MOST_CHARS).collect())
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
