//! The interface between requests and the kinds of upstreams.

use std::ops::ControlFlow;

use super::client::Failure;
use threadkeep_responses::{ModelAnswer, Piece};

/// Reads the answers of one kind of upstream.
pub(super) trait Codec: Sync {
    /// Reads streamed answers.
    type Stream<'a>: EventReader
    where
        Self: 'a;

    /// Reads a whole answer.
    ///
    /// # Errors
    /// [`Failure`] if it is unreadable or an error.
    fn whole(&self, body: &[u8]) -> Result<ModelAnswer, Failure>;

    /// A reader of one stream, which keeps at most `max_bytes` of it.
    fn stream(&self, max_bytes: u64) -> Self::Stream<'_>;
}

/// Reads the events of one stream.
pub(super) trait EventReader: Send {
    /// Reads an event. Breaks at the one that ends the stream.
    ///
    /// # Errors
    /// [`Failure`] if it is unreadable or an error, or the answer gets too long.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure>;

    /// The pieces of the events so far. The caller drains them.
    fn pieces(&mut self) -> &mut Vec<Piece>;

    /// The answer of all events, and the last pieces.
    ///
    /// # Errors
    /// [`Failure`] if it was cut off, or is unreadable.
    fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure>;
}
