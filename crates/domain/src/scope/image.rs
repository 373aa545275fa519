use super::{
    HistorySummary, KV_MAX_BYTES, KV_MAX_KEYS, ScopeKey, ScopePolicy, ScopeValue, StoredItem,
    TaskList,
};
use crate::{Included, Refusal};

/// A snapshot of a thread's scope, used to move or copy the thread. Times are in Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeImage {
    /// The version.
    pub version: u64,
    /// Time of the first write.
    pub created_ms: u64,
    /// Time of the last write.
    pub updated_ms: u64,
    /// Keys and values, sorted bytewise by key.
    pub keys: Vec<KeyImage>,
    /// The task list.
    pub tasks: TaskList,
    /// The version of the scope after the last write to the tasks; 0 before the first write.
    pub tasks_version: u64,
    /// The position of the next history item.
    pub next_seq: u64,
    /// The history items, sorted by position. Positions may have gaps.
    pub items: Vec<StoredItem>,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyImage {
    /// The key.
    pub key: ScopeKey,
    /// The value.
    pub value: ScopeValue,
    /// When the key expires; `None` if never.
    pub expires_ms: Option<u64>,
}

impl ScopeImage {
    /// Returns the total size of all values in bytes.
    #[must_use]
    pub fn kv_bytes(&self) -> u64 {
        let bytes = self.keys.iter().map(|entry| entry.value.as_str().len());
        bytes.sum::<usize>() as u64
    }

    /// Returns the extent of the history.
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

    /// Reduces the image to the parts that a fork copies. Returns `None` if the fork copies neither keys nor history.
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
