//! Entries of the journal of a turn.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::model::ModelAnswer;
use crate::domain::{Failure, Json};
use crate::store::StoreError;

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The model has answered.
    Answer {
        /// The answer.
        answer: ModelAnswer,
        /// The numbers of its items: messages, other items and calls for the client, in its order.
        indexes: Vec<u64>,
    },
    /// The server has run the next call of the last answer.
    Call {
        /// The item, with the result.
        item: Json,
        /// Its number.
        index: u64,
    },
    /// The turn has failed, and may go on.
    Failed(Failure),
}

impl Entry {
    pub(super) fn to_bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self).expect("an entry has text for keys");
        json.into()
    }

    /// # Errors
    /// [`StoreError::Corrupt`] if this version has not written it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let corrupt = |_| StoreError::Corrupt("an entry of a response");
        serde_json::from_slice(bytes).map_err(corrupt)
    }
}
