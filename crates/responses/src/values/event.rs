use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::values::stored::Stored;
use threadkeep_domain::{ItemKind, Json, member_text};

/// A stored event between the beginning and the end of a response.
///
/// `index` identifies an item within the response, and is never reused. `id` is the item's id. `part` is the index of a
/// part in the item's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseEvent {
    /// Another driver (a task that runs the response) has taken over. Readers that followed the previous driver
    /// received a failure event with the same sequence number as this event.
    Resumed,
    ItemAdded {
        index: u64,
        /// The item without its content.
        item: Json,
    },
    /// A part of a message or of reasoning begins.
    PartAdded(TextRef),
    TextDelta {
        #[serde(flatten)]
        text_ref: TextRef,
        delta: String,
    },
    TextDone {
        #[serde(flatten)]
        text_ref: TextRef,
        text: String,
    },
    /// An annotation of a message part, such as a source.
    Annotation {
        index: u64,
        id: String,
        part: usize,
        /// Index among the annotations of the part.
        number: usize,
        json: Json,
    },
    /// A part of a message or of reasoning is complete.
    PartDone {
        #[serde(flatten)]
        text_ref: TextRef,
        json: Json,
    },
    ArgumentsDelta {
        index: u64,
        id: String,
        #[serde(default)]
        call: CallKind,
        delta: String,
    },
    ArgumentsDone {
        index: u64,
        id: String,
        #[serde(default)]
        call: CallKind,
        name: String,
        arguments: String,
    },
    /// Progress of a call that the server runs.
    Call {
        index: u64,
        id: String,
        event: CallEvent,
    },
    /// An item has ended. If the model's answer was interrupted, the item has the status `incomplete` and is not part
    /// of the output.
    ItemDone {
        index: u64,
        item: Json,
        /// True if a limit or a filter cut the item short. Such an item has the status `incomplete`, but is part of the
        /// output.
        #[serde(default)]
        is_cut: bool,
    },
}

/// Identifies a text within an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRef {
    pub index: u64,
    pub id: String,
    pub part: usize,
    #[serde(default)]
    pub kind: TextKind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    #[default]
    Text,
    /// The model's reason for not answering.
    Refusal,
    /// The model's reasoning.
    Reasoning,
    /// A summary of the model's reasoning.
    Summary,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A function of the client.
    #[default]
    Function,
    /// A custom tool of the client.
    Custom,
    /// A tool of a tool server.
    Mcp,
    WebSearch,
    ImageGeneration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEvent {
    McpBegun,
    McpCompleted,
    McpFailed,
    SearchBegun,
    Searching,
    SearchCompleted,
    ImageBegun,
    ImageGenerating,
    ImageCompleted,
}

impl TextKind {
    /// Creates a message part with `text`.
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

    /// Returns the kind and the text of a part. Returns `None` for parts without text.
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

    /// Returns the name of the item member that contains parts of this kind.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Text | Self::Refusal | Self::Reasoning => "content",
        }
    }
}

impl CallKind {
    /// Returns `None` if the item is not a call.
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

    /// Returns whether events report the arguments. OpenAI's API has such events for three kinds of calls.
    pub(crate) fn reports_arguments(self) -> bool {
        matches!(self, Self::Function | Self::Custom | Self::Mcp)
    }

    /// Returns the member of the item that contains the arguments.
    pub(crate) fn arguments(self) -> &'static str {
        match self {
            Self::Custom => "input",
            _ => "arguments",
        }
    }

    /// Returns the events that are sent when the server starts running a call.
    pub(crate) fn begins(self) -> &'static [CallEvent] {
        match self {
            Self::Function | Self::Custom => &[],
            Self::Mcp => &[CallEvent::McpBegun],
            Self::WebSearch => &[CallEvent::SearchBegun, CallEvent::Searching],
            Self::ImageGeneration => &[CallEvent::ImageBegun, CallEvent::ImageGenerating],
        }
    }

    /// Returns the last event of a call, or `None` if OpenAI's API has no event for the outcome.
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
            Self::PartAdded(text_ref)
            | Self::TextDelta { text_ref, .. }
            | Self::TextDone { text_ref, .. }
            | Self::PartDone { text_ref, .. } => Some(text_ref.index),
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
    fn a_text_reference_is_flattened_into_its_event() {
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
            matches!(older, ResponseEvent::PartDone { text_ref, .. } if text_ref.kind == TextKind::Text)
        );
    }
}
