use super::key::Key;
use crate::Refusal;
use crate::json::text::{Json, MAX_DEPTH, is_deeper_than};
use crate::json::value::Value;
use crate::scope::{Appended, HistoryItem, ItemId};

/// An operation of a write. A write runs all of its operations in order, or none of them.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Sets a key.
    Set {
        /// The key.
        key: Key,
        /// Any JSON value.
        value: Value,
    },
    /// Deletes a key. Deleting an absent key is not an error.
    Delete {
        /// The key.
        key: Key,
    },
    /// Deletes all keys.
    Clear,
    /// Appends an element to an array, and then keeps only the newest `max_records` elements. If the key is absent, the
    /// array is created.
    Push {
        /// The key.
        key: Key,
        /// The new element.
        value: Json,
        /// Number of elements to keep; `None` keeps all.
        max_records: Option<u64>,
        /// The effect on a value that is not an array.
        mismatch: Mismatch,
    },
    /// Removes the newest elements of an array. An absent array counts as empty, and is not created.
    Pop {
        /// The key.
        key: Key,
        /// Maximum number of elements to remove.
        count: u64,
    },
    /// Adds to an integer. An absent key counts as 0.
    Increment {
        /// The key.
        key: Key,
        /// The addend.
        by: i64,
    },
    /// Appends an item to the thread's history. Has no effect if an item with the same id and value exists.
    Append(HistoryItem),
}

impl Operation {
    /// Returns the affected key, or `None` for operations on all keys or on the history.
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

/// Returns each item to append to the history, with the index of its operation.
pub fn appends(operations: &[Operation]) -> impl Iterator<Item = (usize, &HistoryItem)> {
    let indexed = operations.iter().enumerate();
    indexed.filter_map(|(index, operation)| match operation {
        Operation::Append(item) => Some((index, item)),
        _ => None,
    })
}

/// Checks that no push exceeds the maximum nesting depth. The array that receives the value counts as one level.
pub fn check_depth(operations: &[Operation]) -> Result<(), Refusal> {
    let too_deep = operations.iter().position(|operation| match operation {
        Operation::Push { value, .. } => is_deeper_than(MAX_DEPTH - 1, value.as_str()),
        _ => false,
    });
    too_deep.map_or(Ok(()), |operation| Err(Refusal::TooDeep { operation }))
}

/// The effect of a push on a value that is not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// Rejects the whole write.
    Refuse,
    /// Skips the push.
    Skip,
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The key was set, or all keys were deleted.
    Done,
    /// Whether the key existed.
    Deleted(bool),
    /// Length of the array after the push.
    Length(u64),
    /// The push was skipped, because the value is not an array.
    Skipped,
    /// A JSON array of the removed elements, oldest first.
    Popped(Json),
    /// The sum.
    Value(i64),
    /// The id and the position of the item.
    Appended(ItemId, Appended),
}
