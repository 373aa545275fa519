use super::effects::{EffectState, SettleEffect};
use super::key::Key;
use super::turn::TurnToken;
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
    /// Records how a tool call of the thread ended.
    Settle(SettleEffect),
}

impl Operation {
    /// Returns the affected key, or `None` for operations on all keys, on the history or on an effect.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Set { key, .. }
            | Self::Delete { key }
            | Self::Push { key, .. }
            | Self::Pop { key, .. }
            | Self::Increment { key, .. } => Some(key),
            Self::Clear | Self::Append(_) | Self::Settle(_) => None,
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

/// Returns each effect to settle, with the index of its operation.
pub fn settles(operations: &[Operation]) -> impl Iterator<Item = (usize, &SettleEffect)> {
    let indexed = operations.iter().enumerate();
    indexed.filter_map(|(index, operation)| match operation {
        Operation::Settle(settle) => Some((index, settle)),
        _ => None,
    })
}

/// Checks the parts of `settle` operations that do not depend on the ledger. `turn` is the token of the write.
pub fn check_settles(operations: &[Operation], turn: Option<TurnToken>) -> Result<(), Refusal> {
    let mut settles = settles(operations);
    settles.try_for_each(|(index, settle)| {
        let checked = settle.check(turn).map_err(Refusal::from);
        checked.map_err(|refusal| refusal.in_operation(index))
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
    /// The effect was settled.
    Settled {
        /// The state of the effect.
        state: EffectState,
        /// Whether an earlier request settled the effect with the same value.
        repeated: bool,
    },
}
