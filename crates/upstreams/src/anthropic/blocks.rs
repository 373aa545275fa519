use std::collections::HashMap;

use super::answer::Ending;
use super::thinking::{self, Thinking};
use crate::client::Failure;
use crate::draft::Draft;
use crate::json::{escaped, escaped_member};
use crate::names::Names;
use threadkeep_domain::{CallForm, Json, given, member, quoted};
use threadkeep_responses::{ModelAnswer, Piece, TextKind};

#[derive(Debug)]
pub(super) struct Blocks<'a> {
    names: &'a Names,
    draft: Draft,
    /// Index of the message to which further text is added. Adjacent text blocks form one message.
    message: Option<usize>,
    /// Unfinished blocks by index. The index is JSON text.
    open: HashMap<String, Block>,
}

#[derive(Debug)]
enum Block {
    Text,
    Call {
        part: usize,
        /// The arguments that were sent at the start of the block, for servers that send no deltas.
        input: String,
        has_deltas: bool,
    },
    Thinking {
        part: usize,
        thinking: Thinking,
    },
    Other {
        block: String,
        has_deltas: bool,
    },
}

impl<'a> Blocks<'a> {
    pub(super) fn new(names: &'a Names, max_bytes: u64) -> Self {
        Self {
            names,
            draft: Draft::new(max_bytes),
            message: None,
            open: HashMap::new(),
        }
    }

    pub(super) fn begin(&mut self, index: &str, block: &str) -> Result<(), Failure> {
        self.draft.count(index.len() + block.len())?;
        let kind = escaped_member(block, "type");
        if kind != Some("text") {
            self.message = None;
        }
        let begun = match kind {
            Some("text") => {
                self.text(block)?;
                Block::Text
            }
            Some("tool_use") => self.call(block)?,
            _ if thinking::is_thinking(block) => {
                let part = self.draft.begin_item(thinking::begun())?;
                let thinking = Thinking::begin(block);
                self.think(part, block)?;
                Block::Thinking { part, thinking }
            }
            _ => Block::Other {
                block: block.into(),
                has_deltas: false,
            },
        };
        self.open.insert(index.into(), begun);
        Ok(())
    }

    fn text(&mut self, value: &str) -> Result<(), Failure> {
        let Some(text) = escaped_member(value, "text") else {
            return Ok(());
        };
        let part = match self.message {
            Some(part) => part,
            None => {
                let part = self.draft.begin_message(Json::from_compact("[]"))?;
                *self.message.insert(part)
            }
        };
        self.draft.text(part, (TextKind::Text, None), text)
    }

    fn think(&mut self, part: usize, value: &str) -> Result<(), Failure> {
        match escaped_member(value, "thinking") {
            Some(text) => {
                let kind_and_index = (TextKind::Summary, Some(0));
                self.draft.text(part, kind_and_index, text)
            }
            None => Ok(()),
        }
    }

    fn call(&mut self, block: &str) -> Result<Block, Failure> {
        let (form, names) = (CallForm::Function, self.names);
        let part = self.draft.begin_call(form, block, "id", names)?;
        let input = given(block, "input");
        Ok(Block::Call {
            part,
            input: input.unwrap_or("{}").into(),
            has_deltas: false,
        })
    }

    pub(super) fn add(&mut self, index: &str, delta: &str) -> Result<(), Failure> {
        match self.open.get_mut(index).ok_or_else(Failure::malformed)? {
            Block::Text => self.text(delta),
            Block::Call {
                part, has_deltas, ..
            } => {
                let Some(json) = escaped_member(delta, "partial_json") else {
                    return Ok(());
                };
                *has_deltas = true;
                self.draft.arguments(*part, json)
            }
            Block::Thinking { part, thinking } => {
                let bytes = thinking.add(delta);
                let part = *part;
                // the item contains the text twice
                self.draft.count(bytes)?;
                self.think(part, delta)
            }
            Block::Other { has_deltas, .. } => {
                *has_deltas = true;
                Ok(())
            }
        }
    }

    pub(super) fn end_block(&mut self, index: &str) -> Result<(), Failure> {
        match self.open.remove(index) {
            Some(Block::Call {
                part,
                input,
                has_deltas: false,
            }) => {
                let input = quoted(&input);
                self.draft
                    .arguments(part, escaped(&input).unwrap_or_default())
            }
            Some(Block::Thinking { part, thinking }) => {
                let item = thinking::item(&thinking.end());
                self.draft.end_item(part, item)
            }
            // does not match an unknown block with deltas, because such a block cannot be assembled
            Some(Block::Other {
                block,
                has_deltas: false,
            }) if member(&block, "type").is_some() => {
                let item = thinking::item(&block);
                let part = self.draft.begin_item(item.clone())?;
                self.draft.end_item(part, item)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn pieces(&mut self) -> &mut Vec<Piece> {
        self.draft.pieces()
    }

    pub(super) fn end(mut self, ending: Ending) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        let open: Vec<_> = self.open.keys().cloned().collect();
        for index in open {
            self.end_block(&index)?;
        }
        self.draft.end(ending.finish(), ending.usage())
    }
}
