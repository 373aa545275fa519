mod calls;
#[cfg(test)]
mod tests;
mod text;
mod texts;

use self::calls::Call;
use self::texts::IndexedText;
use super::client::Failure;
use threadkeep_domain::{Json, Usage};
use threadkeep_responses::{AnswerPart, Finish, ModelAnswer, Piece};

/// Maximum number of parts in one answer. More than 10,000, the highest allowed value of `response_max_tool_calls`.
const PARTS_MAX: usize = 10_240;

/// An unfinished answer. Parts are numbered and started in the order in which they are added.
#[derive(Debug)]
pub(super) struct Draft {
    parts: Vec<Part>,
    bytes_left: u64,
    /// Number of calls whose names have not arrived.
    unnamed_calls: usize,
    /// Pieces that are held back until every call has a name.
    held: Vec<Piece>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Part {
    Message {
        /// The complete message, as in [`AnswerPart::Message`]; `None` until the upstream sends it.
        whole: Option<Json>,
        texts: Vec<IndexedText>,
    },
    Item {
        item: Json,
        texts: Vec<IndexedText>,
    },
    Call(Call),
}

impl Draft {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            parts: Vec::new(),
            bytes_left: max_bytes,
            unnamed_calls: 0,
            held: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// The unsent pieces. The caller drains them.
    pub(super) fn pieces(&mut self) -> &mut Vec<Piece> {
        &mut self.pieces
    }

    fn add(&mut self, part: Part) -> Result<usize, Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(Failure::too_long());
        }
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Queues a piece, or holds it back while any call has no name.
    fn send(&mut self, piece: Piece) {
        match self.unnamed_calls {
            0 => self.pieces.push(piece),
            _ => self.held.push(piece),
        }
    }

    /// Counts `bytes` more bytes towards the size limit, for data that is stored outside the draft.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or_else(Failure::too_long)?;
        Ok(())
    }

    /// Returns the complete answer and the remaining pieces. Fails if any call still has no name.
    pub(super) fn end(
        self,
        finish: Finish,
        usage: Usage,
    ) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        let mut pieces = self.pieces;
        let parts = self.parts.into_iter().enumerate();
        let parts: Option<Vec<_>> = parts
            .map(|(number, part)| part.end(number, &mut pieces))
            .collect();
        let answer = ModelAnswer {
            parts: parts.ok_or_else(Failure::malformed)?,
            finish,
            usage,
        };
        Ok((answer, pieces))
    }
}

fn part_of(piece: &Piece) -> usize {
    match piece {
        Piece::Message { part, .. }
        | Piece::Item { part, .. }
        | Piece::Text { part, .. }
        | Piece::Annotation { part, .. }
        | Piece::ItemDone { part, .. }
        | Piece::Call { part, .. }
        | Piece::Arguments { part, .. } => *part,
        Piece::Void => 0,
    }
}

impl Part {
    fn end(self, part: usize, pieces: &mut Vec<Piece>) -> Option<AnswerPart> {
        Some(match self {
            Self::Item { item, .. } => AnswerPart::Item(item),
            Self::Message { whole, texts } => match whole {
                Some(whole) => AnswerPart::Message(whole),
                None => texts::end(texts, part, pieces),
            },
            Self::Call(call) => call.end(part, pieces)?,
        })
    }
}
