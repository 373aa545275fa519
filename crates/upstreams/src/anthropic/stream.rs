use std::ops::ControlFlow;

use super::answer::Ending;
use super::blocks::Blocks;
use crate::client::Failure;
use crate::codec::{EventReader, kind_of_event, parse_event};
use crate::names::Names;
use threadkeep_domain::{given, member};
use threadkeep_responses::{ModelAnswer, Piece};

#[derive(Debug)]
pub(super) struct MessageStream<'a> {
    blocks: Blocks<'a>,
    ending: Ending,
    /// True if `message_stop` was received. A stream without `message_stop` was cut off.
    has_stopped: bool,
}

impl<'a> MessageStream<'a> {
    pub(super) fn new(names: &'a Names, max_bytes: u64) -> Self {
        Self {
            blocks: Blocks::new(names, max_bytes),
            ending: Ending::default(),
            has_stopped: false,
        }
    }
}

impl EventReader for MessageStream<'_> {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure> {
        let event = parse_event(data)?;
        let event = event.as_str();
        let index = member(event, "index").unwrap_or_default();
        let member = |name| member(event, name).unwrap_or_default();
        match kind_of_event(name, event) {
            Some("message_start") => self.ending.read_usage(member("message")),
            Some("content_block_start") => {
                self.blocks.begin(index, member("content_block"))?;
            }
            Some("content_block_delta") => self.blocks.add(index, member("delta"))?,
            Some("content_block_stop") => self.blocks.end_block(index)?,
            Some("message_delta") => {
                self.ending.read_reason(member("delta"));
                self.ending.read_usage(event);
            }
            Some("message_stop") => {
                self.has_stopped = true;
                return Ok(ControlFlow::Break(()));
            }
            Some("error") => return Err(Failure::of_error(given(event, "error").unwrap_or(event))),
            // `ping`, and events of later API versions
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn pieces(&mut self) -> &mut Vec<Piece> {
        self.blocks.pieces()
    }

    fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        if !self.has_stopped {
            return Err(Failure::malformed());
        }
        self.blocks.end(self.ending)
    }
}

#[cfg(test)]
mod tests;
