//! Events of a turn.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::Json;
use crate::store::StoreError;

/// An event of a turn between its beginning and its end, in the form in which it is kept.
///
/// `index` is the number of an item in the stream, which no other item ever has, and `id` its id; `part` is the number of a
/// part of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEvent {
    /// A driver goes on with the turn. It is an event so that what follows a failure has other numbers than the failure, which
    /// was the last event for its readers.
    Resumed,
    /// An item begins.
    ItemAdded {
        /// Its number.
        index: u64,
        /// The item, without all that is yet to come.
        item: Json,
    },
    /// A part of a message begins.
    PartAdded {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The number of the part.
        part: usize,
        /// The kind of its text.
        kind: TextKind,
    },
    /// More of the text of a part.
    TextDelta {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The number of the part.
        part: usize,
        /// The kind of the text.
        kind: TextKind,
        /// The text.
        delta: String,
    },
    /// The text of a part is complete.
    TextDone {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The number of the part.
        part: usize,
        /// The kind of the text.
        kind: TextKind,
        /// The whole text.
        text: String,
    },
    /// A part of a message is complete.
    PartDone {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The number of the part.
        part: usize,
        /// The part.
        json: Json,
    },
    /// More of the arguments of a call for the client.
    ArgumentsDelta {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The text.
        delta: String,
    },
    /// The arguments of a call for the client are complete.
    ArgumentsDone {
        /// The number of the item.
        index: u64,
        /// Its id.
        id: String,
        /// The name of its function.
        name: String,
        /// The whole text.
        arguments: String,
    },
    /// An item is complete, or was broken off: then it has the status `incomplete`, and is no part of the output.
    ItemDone {
        /// Its number.
        index: u64,
        /// The item.
        item: Json,
    },
}

/// The kinds of texts in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// An answer.
    Text,
    /// The reason for which the model does not answer.
    Refusal,
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
        }
    }
}

impl TurnEvent {
    /// The number of its item, if it is about one.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        match self {
            Self::Resumed => None,
            Self::ItemAdded { index, .. }
            | Self::PartAdded { index, .. }
            | Self::TextDelta { index, .. }
            | Self::TextDone { index, .. }
            | Self::PartDone { index, .. }
            | Self::ArgumentsDelta { index, .. }
            | Self::ArgumentsDone { index, .. }
            | Self::ItemDone { index, .. } => Some(*index),
        }
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self).expect("an event has text for keys");
        json.into()
    }

    /// # Errors
    /// [`StoreError::Corrupt`] if this version has not written it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let corrupt = |_| StoreError::Corrupt("an event of a response");
        serde_json::from_slice(bytes).map_err(corrupt)
    }
}
