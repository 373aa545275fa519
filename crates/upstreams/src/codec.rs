use std::ops::ControlFlow;

use super::client::Failure;
use super::json::inside_member;
use threadkeep_domain::Json;
use threadkeep_responses::{ModelAnswer, Piece};

pub(super) struct Codec<'a, R> {
    /// Parses a whole answer. Fails if it is unreadable or an error.
    pub(super) whole: &'a (dyn Fn(&[u8]) -> Result<ModelAnswer, Failure> + Sync),
    /// Creates the reader of one stream. The argument is the maximum size that it may buffer.
    pub(super) stream: &'a (dyn Fn(u64) -> R + Sync),
}

pub(super) fn parse_event(data: &str) -> Result<Json, Failure> {
    Json::parse(data).map_err(|_| Failure::malformed())
}

/// Returns the `type` of an event, or `error` for errors.
pub(super) fn kind_of_event<'a>(name: Option<&'a str>, event: &'a str) -> Option<&'a str> {
    match name {
        Some("error") => name,
        _ => inside_member(event, "type").or(name),
    }
}

pub(super) trait EventReader: Send {
    /// Reads an event. Breaks at the last one. Fails if the event is an error, or the answer exceeds its limit.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure>;

    /// The pieces read so far. The caller drains them.
    fn pieces(&mut self) -> &mut Vec<Piece>;

    /// Returns the whole answer, and the last pieces. Fails if the stream was cut off.
    fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure>;
}
