use super::media::{document, image};
use super::thinking;
use crate::content::{Part, arguments_object, input_object, part, parts, plain_text};
use crate::json::{Object, array, escaped, text};
use crate::names::Names;
use threadkeep_domain::{CallForm, PromptItem, quoted};
use threadkeep_responses::Question;

/// Inserted before an assistant message that begins a conversation, because the API requires a user message first.
const BEGIN: &str = r#"{"type":"text","text":"(The conversation begins.)"}"#;

pub(super) struct Conversation {
    pub(super) system: Vec<String>,
    pub(super) messages: Vec<String>,
}

/// Converts the instructions and the conversation.
///
/// All `system` and `developer` messages become part of the system prompt, in order. Adjacent messages with the same
/// role are merged, so that roles alternate. The tool results of one step share a message. Text blocks without visible
/// characters are omitted, because the API rejects them.
pub(super) fn conversation(question: &Question<'_>, names: &mut Names) -> Conversation {
    let mut writer = Writer {
        system: Vec::new(),
        messages: Vec::new(),
        names,
        ids: Names::default(),
    };
    if let Some(instructions) = question.instructions {
        let text = quoted(instructions);
        writer
            .system
            .extend(text_block(escaped(&text).unwrap_or_default()));
    }
    for item in question.prompt {
        writer.item(item);
    }
    writer.end()
}

struct Writer<'a> {
    system: Vec<String>,
    messages: Vec<Message>,
    names: &'a mut Names,
    ids: Names,
}

struct Message {
    role: &'static str,
    blocks: Vec<Block>,
}

struct Block {
    json: String,
    /// True for a thinking block. A message must not end with such a block.
    is_thinking: bool,
}

impl Writer<'_> {
    fn item(&mut self, item: &PromptItem<'_>) {
        match item {
            PromptItem::Message { role, content, .. } => match *role {
                "system" | "developer" => self.system.extend(texts(content)),
                "assistant" => self.push("assistant", texts(content)),
                _ => self.push("user", parts(content).filter_map(block)),
            },
            PromptItem::Reasoning(item) | PromptItem::Other(item) => {
                if let Some(block) = thinking::block(item) {
                    let is_thinking = thinking::is_thinking(&block);
                    let json = block.into_owned();
                    self.blocks("assistant").push(Block { json, is_thinking });
                }
            }
            PromptItem::Call {
                form,
                id,
                name,
                arguments,
            } => {
                let input = match form {
                    CallForm::Function => arguments_object(arguments),
                    CallForm::Custom => input_object(arguments).into(),
                };
                let call = Object::of_type("tool_use")
                    .text("id", &self.ids.encode(id))
                    .text("name", &self.names.encode(name))
                    .json("input", &input);
                self.push("assistant", [call.close()]);
            }
            PromptItem::Result {
                id,
                output,
                is_mistake,
                ..
            } => {
                let result = Object::of_type("tool_result")
                    .text("tool_use_id", &self.ids.encode(id))
                    .json("content", &result_content(output))
                    .flag("is_error", *is_mistake);
                self.push("user", [result.close()]);
            }
        }
    }

    fn push(&mut self, role: &'static str, blocks: impl IntoIterator<Item = String>) {
        let blocks = blocks.into_iter().map(|json| Block {
            json,
            is_thinking: false,
        });
        let mut blocks = blocks.peekable();
        if blocks.peek().is_some() {
            self.blocks(role).extend(blocks);
        }
    }

    /// Returns the blocks of the last message if its role is `role`. Otherwise, returns the blocks of a new message.
    fn blocks(&mut self, role: &'static str) -> &mut Vec<Block> {
        if self.messages.last().is_none_or(|last| last.role != role) {
            self.end_message();
            let is_last = self.messages.last().is_some_and(|last| last.role == role);
            if !is_last {
                let blocks = Vec::new();
                self.messages.push(Message { role, blocks });
            }
        }
        let last = self.messages.last_mut();
        &mut last.expect("a message was added").blocks
    }

    /// Removes trailing thinking blocks from the last message, and removes the message if it has no other blocks.
    fn end_message(&mut self) {
        if let Some(message) = self.messages.last_mut() {
            while message.blocks.last().is_some_and(|block| block.is_thinking) {
                message.blocks.pop();
            }
            if message.blocks.is_empty() {
                self.messages.pop();
            }
        }
    }

    fn end(mut self) -> Conversation {
        self.end_message();
        let lacks_user_message = self
            .messages
            .first()
            .is_some_and(|first| first.role != "user");
        let begin = lacks_user_message.then(|| message("user", &[BEGIN.into()]));
        let messages = self.messages.into_iter().map(|message| {
            let blocks: Vec<_> = message.blocks.into_iter().map(|block| block.json).collect();
            self::message(message.role, &blocks)
        });
        Conversation {
            system: self.system,
            messages: begin.into_iter().chain(messages).collect(),
        }
    }
}

fn message(role: &str, blocks: &[String]) -> String {
    let message = Object::new().text("role", role);
    message.json("content", &array(blocks)).close()
}

fn texts(content: &str) -> impl Iterator<Item = String> {
    parts(content).filter_map(|part| match part {
        Part::Text(text) => text_block(text),
        _ => None,
    })
}

pub(super) fn accepts(content_part: &str) -> bool {
    part(content_part).and_then(block).is_some()
}

fn block(part: Part<'_>) -> Option<String> {
    match part {
        Part::Text(text) => text_block(text),
        Part::Image(part) => image(part),
        Part::File(part) => document(part),
    }
}

/// Returns a text block, or `None` if the text has no visible characters. `content` is JSON-escaped.
fn text_block(content: &str) -> Option<String> {
    let json = format!("\"{content}\"");
    if text(&json).is_none_or(|text| text.trim().is_empty()) {
        return None;
    }
    Some(Object::of_type("text").json("text", &json).close())
}

/// Converts the output of a tool to a string, or to an array of blocks if the output contains media.
fn result_content(output: &str) -> String {
    match escaped(output) {
        Some(_) => output.into(),
        None if !output.starts_with('[') => quoted(output),
        None if parts(output).all(|part| matches!(part, Part::Text(_))) => plain_text(output),
        None => array(&parts(output).filter_map(block).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests;
