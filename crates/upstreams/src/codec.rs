use std::ops::ControlFlow;

use super::client::Failure;
use super::json::escaped_member;
use threadkeep_domain::Json;
use threadkeep_responses::{ModelAnswer, Piece};

pub(super) struct Codec<'a, R> {
    /// Parses a complete answer. Fails if the answer cannot be read or is an error.
    pub(super) whole: &'a (dyn Fn(&[u8]) -> Result<ModelAnswer, Failure> + Sync),
    /// Creates a reader for one stream. The argument is the maximum number of bytes to buffer.
    pub(super) stream: &'a (dyn Fn(u64) -> R + Sync),
}

pub(super) fn parse_event(data: &str) -> Result<Json, Failure> {
    Json::parse(data).map_err(|_| Failure::malformed())
}

/// Returns the `type` of an event. Returns the event's name instead if the name is `error` or there is no `type`.
pub(super) fn kind_of_event<'a>(name: Option<&'a str>, event: &'a str) -> Option<&'a str> {
    match name {
        Some("error") => name,
        _ => escaped_member(event, "type").or(name),
    }
}

pub(super) trait EventReader: Send {
    /// Reads an event. Returns `Break` for the last event. Fails if the event is an error, or if the answer exceeds its
    /// size limit.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure>;

    /// The pieces read so far. The caller drains them.
    fn pieces(&mut self) -> &mut Vec<Piece>;

    /// Returns the complete answer and the last pieces. Fails if the stream was cut off.
    fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure>;
}
