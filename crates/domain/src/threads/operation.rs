//! The operations of a merge, and what each answers.

use super::key::Key;
use crate::Refusal;
use crate::json::text::{Json, MAX_DEPTH, is_deeper_than};
use crate::json::value::Value;
use crate::scope::{Appended, HistoryItem, ItemId};

/// One step of a merge. A merge runs all of its steps in order, or none.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Sets a key.
    Set {
        /// Which.
        key: Key,
        /// Any JSON value.
        value: Value,
    },
    /// Deletes a key; deleting an absent one is no error.
    Delete {
        /// Which.
        key: Key,
    },
    /// Deletes all keys.
    Clear,
    /// Appends to an array, which is made if absent, then keeps its newest elements.
    Push {
        /// Which.
        key: Key,
        /// The new element.
        value: Json,
        /// The number of elements to keep; none keeps all.
        max_records: Option<u64>,
        /// The effect on a value that is not an array.
        mismatch: Mismatch,
    },
    /// Removes the newest elements of an array; an absent one counts as empty, and stays absent.
    Pop {
        /// Which.
        key: Key,
        /// How many at most.
        count: u64,
    },
    /// Adds to an integer; an absent one counts as 0.
    Increment {
        /// Which.
        key: Key,
        /// The number to add.
        by: i64,
    },
    /// Appends an item to the thread's history. An item whose id and value the history has is not appended again.
    Append(HistoryItem),
}

impl Operation {
    /// The key that it affects; none if all, or if it is about the history.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Set { key, .. }
            | Self::Delete { key }
            | Self::Push { key, .. }
            | Self::Pop { key, .. }
            | Self::Increment { key, .. } => Some(key),
            Self::Clear | Self::Append(_) => None,
        }
    }
}

/// The items that operations append to the history, each with the index of its operation.
pub fn appends(operations: &[Operation]) -> impl Iterator<Item = (usize, &HistoryItem)> {
    let places = operations.iter().enumerate();
    places.filter_map(|(index, operation)| match operation {
        Operation::Append(item) => Some((index, item)),
        _ => None,
    })
}

/// Checks that no push nests a value too deep. The array around the value counts as a level.
///
/// # Errors
/// [`Refusal::TooDeep`].
pub fn check_depth(operations: &[Operation]) -> Result<(), Refusal> {
    let found = operations.iter().position(|operation| match operation {
        Operation::Push { value, .. } => is_deeper_than(MAX_DEPTH - 1, value.as_str()),
        _ => false,
    });
    found.map_or(Ok(()), |operation| Err(Refusal::TooDeep { operation }))
}

/// The effect of a push on a value that is not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// It is refused, and with it the whole merge.
    Refuse,
    /// Nothing.
    Skip,
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of set and clear.
    Done,
    /// Of delete: whether there was such a key.
    Deleted(bool),
    /// Of push: elements in the array afterwards.
    Length(u64),
    /// Of a push that met something else than an array and did nothing.
    Skipped,
    /// Of pop: a JSON array of the removed elements, the oldest first.
    Popped(Json),
    /// Of increment: the sum.
    Value(i64),
    /// Of append: the item's id, and its place.
    Appended(ItemId, Appended),
}
