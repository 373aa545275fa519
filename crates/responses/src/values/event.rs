//! Events of a response.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::values::stored::Stored;
use threadkeep_domain::{ItemKind, Json, member_text};

/// An event of a response between its beginning and its end, in the form in which it is kept.
///
/// `index` is the number of an item in the stream, which no other item ever has, and `id` its id; `part` is the number of a
/// part of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseEvent {
    /// A driver continues the response. This is an event so that later events do not get the number of the failure,
    /// which was the last event for its readers.
    Resumed,
    /// An item begins.
    ItemAdded {
        /// Its number.
        index: u64,
        /// The item, without all that is yet to come.
        item: Json,
    },
    /// A part of a message or of reasoning begins.
    PartAdded(TextPlace),
    /// More of the text of a part.
    TextDelta {
        /// The place of the text.
        #[serde(flatten)]
        place: TextPlace,
        /// The text.
        delta: String,
    },
    /// The text of a part is complete.
    TextDone {
        /// The place of the text.
        #[serde(flatten)]
        place: TextPlace,
        /// The whole text.
        text: String,
    },
    /// A source or something else that belongs to a part of a message.
    Annotation {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The number of the part.
        part: usize,
        /// Its number among those of the part.
        number: usize,
        /// The annotation.
        json: Json,
    },
    /// A part of a message or of reasoning is complete.
    PartDone {
        /// The place of its text.
        #[serde(flatten)]
        place: TextPlace,
        /// The part.
        json: Json,
    },
    /// More of the arguments of a call.
    ArgumentsDelta {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The kind of the call.
        #[serde(default)]
        call: CallKind,
        /// The text.
        delta: String,
    },
    /// The arguments of a call are complete.
    ArgumentsDone {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The kind of the call.
        #[serde(default)]
        call: CallKind,
        /// The name of its function.
        name: String,
        /// The whole text.
        arguments: String,
    },
    /// A call that this server runs has come further.
    Call {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The step that it has reached.
        event: CallEvent,
    },
    /// An item is complete, or was broken off: then it has the status `incomplete`, and is no part of the output.
    ItemDone {
        /// Its number.
        index: u64,
        /// The item.
        item: Json,
        /// Whether a limit or a filter has cut it: it has the status `incomplete` too, but is a part of the output.
        #[serde(default)]
        is_cut: bool,
    },
}

/// The place of a text: a part of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPlace {
    /// The number of the item.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// The number of the part.
    pub part: usize,
    /// The kind of the text.
    #[serde(default)]
    pub kind: TextKind,
}

/// The kinds of texts in messages and in reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// An answer.
    #[default]
    Text,
    /// The reason for which the model does not answer.
    Refusal,
    /// The thoughts of the model.
    Reasoning,
    /// A summary of that.
    Summary,
}

/// The kinds of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// That of a function of the client.
    #[default]
    Function,
    /// That of a custom tool of the client.
    Custom,
    /// That of a tool server.
    Mcp,
    /// That of the web search.
    WebSearch,
    /// That of the image generation.
    ImageGeneration,
}

/// The steps of a call that this server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEvent {
    /// A tool of a tool server is about to run.
    McpBegun,
    /// It has a result.
    McpCompleted,
    /// It has none.
    McpFailed,
    /// A search is about to begin.
    SearchBegun,
    /// It runs.
    Searching,
    /// It has a result.
    SearchCompleted,
    /// The generation of an image is about to begin.
    ImageBegun,
    /// It runs.
    ImageGenerating,
    /// The image is there.
    ImageCompleted,
}

impl TextKind {
    /// The part of a message with that text.
    #[must_use]
    pub fn part(self, text: &str) -> Value {
        match self {
            Self::Text => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
            Self::Refusal => json!({"type": "refusal", "refusal": text}),
            Self::Reasoning => json!({"type": "reasoning_text", "text": text}),
            Self::Summary => json!({"type": "summary_text", "text": text}),
        }
    }

    /// The kind of a part, and its text.
    pub(crate) fn read(part: &str) -> Option<(Self, String)> {
        let (kind, member) = match &*member_text(part, "type")? {
            "output_text" => (Self::Text, "text"),
            "refusal" => (Self::Refusal, "refusal"),
            "reasoning_text" => (Self::Reasoning, "text"),
            "summary_text" => (Self::Summary, "text"),
            _ => return None,
        };
        Some((kind, member_text(part, member).unwrap_or_default().into()))
    }

    /// The member of an item whose parts have such texts.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Text | Self::Refusal | Self::Reasoning => "content",
        }
    }
}

impl CallKind {
    /// That of an item, if it is a call.
    pub(crate) fn of_item(item: &str) -> Option<Self> {
        Some(match ItemKind::of(item)? {
            ItemKind::FunctionCall => Self::Function,
            ItemKind::CustomToolCall => Self::Custom,
            ItemKind::McpCall => Self::Mcp,
            ItemKind::WebSearchCall => Self::WebSearch,
            ItemKind::ImageGenerationCall => Self::ImageGeneration,
            _ => return None,
        })
    }

    /// Whether events report its arguments. OpenAI's API has such events for three kinds of calls.
    pub(crate) fn tells_arguments(self) -> bool {
        matches!(self, Self::Function | Self::Custom | Self::Mcp)
    }

    /// The member of its item that has its arguments.
    pub(crate) fn arguments(self) -> &'static str {
        match self {
            Self::Custom => "input",
            _ => "arguments",
        }
    }

    /// The steps with which it begins when the server runs it.
    pub(crate) fn begins(self) -> &'static [CallEvent] {
        match self {
            Self::Function | Self::Custom => &[],
            Self::Mcp => &[CallEvent::McpBegun],
            Self::WebSearch => &[CallEvent::SearchBegun, CallEvent::Searching],
            Self::ImageGeneration => &[CallEvent::ImageBegun, CallEvent::ImageGenerating],
        }
    }

    /// Its last step, if OpenAI's API has an event for that.
    pub(crate) fn ends(self, has_failed: bool) -> Option<CallEvent> {
        match (self, has_failed) {
            (Self::Mcp, true) => Some(CallEvent::McpFailed),
            (Self::Function | Self::Custom, _) | (_, true) => None,
            (Self::Mcp, false) => Some(CallEvent::McpCompleted),
            (Self::WebSearch, false) => Some(CallEvent::SearchCompleted),
            (Self::ImageGeneration, false) => Some(CallEvent::ImageCompleted),
        }
    }
}

impl ResponseEvent {
    /// The number of its item, if it is about one.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        match self {
            Self::Resumed => None,
            Self::ItemAdded { index, .. }
            | Self::Annotation { index, .. }
            | Self::ArgumentsDelta { index, .. }
            | Self::ArgumentsDone { index, .. }
            | Self::Call { index, .. }
            | Self::ItemDone { index, .. } => Some(*index),
            Self::PartAdded(place)
            | Self::TextDelta { place, .. }
            | Self::TextDone { place, .. }
            | Self::PartDone { place, .. } => Some(place.index),
        }
    }
}

impl Stored for ResponseEvent {
    const NAME: &'static str = "an event of a response";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_text_is_stored_among_the_members_of_its_event() {
        for stored in [
            r#"{"part_added":{"index":3,"id":"msg_1","part":1,"kind":"summary"}}"#,
            r#"{"text_delta":{"index":3,"id":"msg_1","part":1,"kind":"refusal","delta":"a\n"}}"#,
            r#"{"text_done":{"index":3,"id":"msg_1","part":1,"kind":"text","text":"a"}}"#,
            r#"{"part_done":{"index":3,"id":"msg_1","part":1,"kind":"text","json":{"n":[1.0]}}}"#,
        ] {
            let event = ResponseEvent::read(stored.as_bytes()).unwrap();

            assert_eq!(event.index(), Some(3));
            assert_eq!(event.to_bytes(), stored.as_bytes());
        }
        let older = r#"{"part_done":{"index":3,"id":"msg_1","part":1,"json":{}}}"#;
        let older = ResponseEvent::read(older.as_bytes()).unwrap();
        assert!(
            matches!(older, ResponseEvent::PartDone { place, .. } if place.kind == TextKind::Text)
        );
    }
}
