//! The interface between requests and the kinds of upstreams.

use std::ops::ControlFlow;

use super::client::Failure;
use super::json::inside_member;
use threadkeep_domain::Json;
use threadkeep_responses::{ModelAnswer, Piece};

/// Reads the answers to one request.
pub(super) struct Codec<'a, R> {
    /// Reads a whole answer. Fails if it is unreadable or an error.
    pub(super) whole: &'a (dyn Fn(&[u8]) -> Result<ModelAnswer, Failure> + Sync),
    /// Makes the reader of one stream, given the bytes that it keeps at most.
    pub(super) stream: &'a (dyn Fn(u64) -> R + Sync),
}

/// Reads the data of an event.
///
/// # Errors
/// [`Failure`] if it is not JSON.
pub(super) fn parse_event(data: &str) -> Result<Json, Failure> {
    Json::parse(data).map_err(|_| Failure::malformed())
}

/// The kind of an event, which its `type` names, unless it is an error.
pub(super) fn kind_of_event<'a>(name: Option<&'a str>, event: &'a str) -> Option<&'a str> {
    match name {
        Some("error") => name,
        _ => inside_member(event, "type").or(name),
    }
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
