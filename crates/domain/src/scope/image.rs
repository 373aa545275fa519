//! All that the scope of a thread holds, to be moved or copied.

use super::{
    HistorySummary, KV_MAX_BYTES, KV_MAX_KEYS, ScopeKey, ScopePolicy, ScopeValue, StoredItem,
    TaskList,
};
use crate::{Included, Refusal};

/// The content of a thread's scope at one moment. Times are milliseconds of the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeImage {
    /// The version.
    pub version: u64,
    /// When its first write came.
    pub created_ms: u64,
    /// When its last write came.
    pub updated_ms: u64,
    /// Keys with their values, sorted by the keys' bytes.
    pub keys: Vec<KeyImage>,
    /// The task list.
    pub tasks: TaskList,
    /// The version at which the tasks were last written; 0: never.
    pub tasks_version: u64,
    /// The place that the next item gets.
    pub next_seq: u64,
    /// The items of the history, in the order of their places, of which some may be empty.
    pub items: Vec<StoredItem>,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyImage {
    /// The key.
    pub key: ScopeKey,
    /// Its value.
    pub value: ScopeValue,
    /// When it expires, if it does.
    pub expires_ms: Option<u64>,
}

impl ScopeImage {
    /// Bytes of all values.
    #[must_use]
    pub fn kv_bytes(&self) -> u64 {
        let bytes = self.keys.iter().map(|entry| entry.value.as_str().len());
        bytes.sum::<usize>() as u64
    }

    /// How much history there is.
    #[must_use]
    pub fn history(&self) -> HistorySummary {
        let first_seq = self.items.first().map_or(self.next_seq, |item| item.seq);
        HistorySummary {
            first_seq,
            next_seq: self.next_seq,
            removed: self.next_seq - first_seq - self.items.len() as u64,
            bytes: self.items.iter().map(StoredItem::cost_bytes).sum(),
        }
    }

    /// Checks that a scope may have all that.
    pub(crate) fn check(&self, policy: &ScopePolicy) -> Result<(), Refusal> {
        let attempted_bytes = self.kv_bytes();
        if attempted_bytes > KV_MAX_BYTES {
            return Err(Refusal::KvTooLarge {
                limit_bytes: KV_MAX_BYTES,
                attempted_bytes,
            });
        }
        if self.keys.len() > KV_MAX_KEYS as usize {
            return Err(Refusal::TooManyKeys {
                limit_keys: KV_MAX_KEYS,
            });
        }
        let limit_bytes = policy.history.max_bytes;
        let attempted_bytes = self.history().bytes;
        if attempted_bytes > limit_bytes {
            return Err(Refusal::HistoryTooLarge {
                limit_bytes,
                size_bytes: 0,
                attempted_bytes,
            });
        }
        Ok(())
    }

    /// The parts that a fork copies; none without any.
    pub(crate) fn reduced(mut self, included: &Included, until: Option<u64>) -> Option<Self> {
        if !included.scope {
            self.keys = Vec::new();
            self.tasks = TaskList::default();
            self.tasks_version = 0;
        }
        if !included.history {
            self.items = Vec::new();
        }
        if let Some(until) = until {
            self.items.retain(|item| item.seq <= until);
        }
        (included.scope || included.history).then_some(self)
    }
}
