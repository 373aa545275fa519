use std::collections::BTreeSet;

use bytes::Bytes;

use super::{
    Appended, Compaction, History, KV_MAX_BYTES, KV_MAX_KEYS, KeyImage, KvAnswer, KvOperation,
    Removal, ScopeImage, ScopeKey, ScopeValue, ScopeWrite, StoredItem, TaskList,
};
use crate::members::{Draft, Member, Members};
use crate::{Heap, IntegerError, Precondition, Refusal, Stamp, add, heap};

/// The content of a scope. Implements the reference semantics of writes.
#[derive(Debug, Clone, Default)]
pub struct ScopeDocument {
    entries: Members<ScopeKey, Entry>,
    tasks: TaskList,
    tasks_heap_bytes: u64,
    tasks_version: u64,
    record: Option<Bytes>,
    history: History,
    is_sealed: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    value: ScopeValue,
    expires_ms: Option<u64>,
}

/// The result of an accepted write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// One answer per operation.
    pub answers: Vec<KvAnswer>,
    /// One outcome per appended item.
    pub appended: Vec<Appended>,
    /// Number of items removed from the history.
    pub removed: u64,
    /// The items that the write [removed from the end](Removal::Newest), oldest first.
    pub taken: Vec<StoredItem>,
    /// Keys that were set, deleted or incremented.
    pub keys: BTreeSet<ScopeKey>,
    /// Whether the version changes. If a write [only adds](ScopeWrite::only_adds) data, and all of the data already
    /// exists, the version does not change.
    pub is_change: bool,
}

impl ScopeDocument {
    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &ScopeKey, now_ms: u64) -> Option<&ScopeValue> {
        let entry = self.entries.get(key)?;
        entry.lives(now_ms).then_some(&entry.value)
    }

    /// Returns the unexpired keys and values, sorted bytewise by key.
    pub fn iter(&self, now_ms: u64) -> impl Iterator<Item = (&ScopeKey, &ScopeValue)> {
        let living = self
            .entries
            .iter()
            .filter(move |(_, entry)| entry.lives(now_ms));
        living.map(|(key, entry)| (key, &entry.value))
    }

    /// Removes expired keys.
    pub fn purge(&mut self, now_ms: u64) {
        self.entries.retain(|entry| entry.lives(now_ms));
    }

    /// Returns the total size of all values in bytes.
    #[must_use]
    pub fn kv_bytes(&self) -> u64 {
        self.entries.counted_bytes()
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.entries.len()
    }

    /// Returns the task list.
    #[must_use]
    pub fn tasks(&self) -> &TaskList {
        &self.tasks
    }

    /// Returns the version of the scope after the last write to the tasks; 0 before the first write.
    #[must_use]
    pub fn tasks_version(&self) -> u64 {
        self.tasks_version
    }

    /// Returns the data that the creator of the scope stored with it.
    #[must_use]
    pub fn record(&self) -> Option<&Bytes> {
        self.record.as_ref()
    }

    /// Returns the history.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns whether the scope rejects writes.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Exports the content. `times` contains the times of the first and last write.
    pub fn image(&self, version: u64, times: (u64, u64), now_ms: u64) -> ScopeImage {
        let living = self.entries.iter().filter(|(_, entry)| entry.lives(now_ms));
        let keys = living.map(|(key, entry)| KeyImage {
            key: key.clone(),
            value: entry.value.clone(),
            expires_ms: entry.expires_ms,
        });
        ScopeImage {
            version,
            created_ms: times.0,
            updated_ms: times.1,
            keys: keys.collect(),
            tasks: self.tasks.clone(),
            tasks_version: self.tasks_version,
            next_seq: self.history.summary().next_seq,
            items: self.history.read(0, false, usize::MAX),
        }
    }

    /// Restores the content of an image.
    pub fn of_image(image: &ScopeImage) -> Self {
        let entries = image.keys.iter().cloned();
        let entries = entries.map(
            |KeyImage {
                 key,
                 value,
                 expires_ms,
             }| { (key, Entry { value, expires_ms }) },
        );
        Self {
            entries: entries.collect(),
            tasks: image.tasks.clone(),
            tasks_heap_bytes: image.tasks.heap_bytes(),
            tasks_version: image.tasks_version,
            record: None,
            history: History::of_items(image.items.clone(), image.next_seq),
            is_sealed: false,
        }
    }

    /// Applies a write atomically. `stamp` contains the current version and life. A change increments the version.
    pub fn apply(
        &mut self,
        write: &ScopeWrite<'_>,
        stamp: Stamp,
        now_ms: u64,
    ) -> Result<Applied, Refusal> {
        self.purge(now_ms);
        self.check(write, stamp)?;
        let mut draft = self.entries.draft();
        let answers = run(&mut draft, write.operations, now_ms)?;
        let changes = draft.into_changes();
        let limit = &write.policy.history;
        self.history.tidy_segments(now_ms);
        let removed = self.history.find(write.removes);
        let appended = self.history.plan(&removed, write.history, limit)?;
        let adds_nothing = changes.is_empty() && appended.iter().all(|appended| appended.repeated);
        if write.only_adds() && adds_nothing {
            return Ok(Applied {
                answers,
                appended,
                ..Applied::default()
            });
        }

        // from here on, the write cannot be rejected
        let keys = changes.keys(&self.entries).cloned().collect();
        self.entries.commit(changes);
        if let Some(tasks) = write.tasks {
            self.tasks = tasks.new.clone();
            self.tasks_heap_bytes = self.tasks.heap_bytes();
            self.tasks_version = stamp.version + 1;
        }
        if let Some(record) = write.record {
            // copy, because the original may be a slice that keeps a larger buffer in memory
            self.record = Some(Bytes::copy_from_slice(&record.new));
        }
        let before = self.history.summary().len();
        let mut taken = self.history.remove(removed);
        let removed_count = before - self.history.summary().len();
        // the length of the history excludes segments, so only `taken` counts an item that was removed from a segment
        let removed = removed_count.max(taken.len() as u64);
        if !matches!(write.removes, Some(Removal::Newest(_))) {
            taken.clear();
        }
        self.history.append(write.history, &appended, limit, now_ms);
        self.history.tidy_segments(now_ms);
        self.is_sealed |= write.seals;
        Ok(Applied {
            answers,
            appended,
            removed,
            taken,
            keys,
            is_change: true,
        })
    }

    /// Compacts the history atomically. Returns the number of the new segment, and the number of older segments that
    /// were dropped to make room for it.
    pub fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        now_ms: u64,
    ) -> Result<(u32, u32), Refusal> {
        if self.is_sealed {
            return Err(Refusal::ScopeEnded);
        }
        self.history.compact(compaction, now_ms)
    }

    fn check(&self, write: &ScopeWrite<'_>, stamp: Stamp) -> Result<(), Refusal> {
        if self.is_sealed {
            return Err(Refusal::ScopeEnded);
        }
        Precondition::check(write.conditions.precondition, stamp)?;
        let expected_record = write.record.and_then(|record| record.expected.as_ref());
        if expected_record.is_some_and(|expected| self.record.as_ref() != Some(expected)) {
            return Err(Refusal::Changed);
        }
        let current_tasks = Stamp {
            version: self.tasks_version,
            life: stamp.life,
        };
        let expected_tasks = write.tasks.and_then(|tasks| tasks.expected);
        if expected_tasks.is_some_and(|expected| expected != current_tasks) {
            return Err(Refusal::Changed);
        }
        Ok(())
    }
}

impl Heap for ScopeDocument {
    fn heap_bytes(&self) -> u64 {
        let record = self.record.as_ref().map_or(0, Bytes::len);
        self.entries.heap_bytes()
            + self.tasks_heap_bytes
            + heap::block(record)
            + self.history.heap_bytes()
    }
}

impl Entry {
    fn lives(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }
}

impl Heap for Entry {
    fn heap_bytes(&self) -> u64 {
        self.value.heap_bytes()
    }
}

impl Member<ScopeKey> for Entry {
    fn counted_bytes(&self, _: &ScopeKey) -> u64 {
        self.value.as_str().len() as u64
    }
}

fn run(
    draft: &mut Draft<'_, ScopeKey, Entry>,
    operations: &[KvOperation],
    now_ms: u64,
) -> Result<Vec<KvAnswer>, Refusal> {
    let mut answers = Vec::with_capacity(operations.len());
    for (operation, step) in operations.iter().enumerate() {
        answers.push(run_one(draft, step, operation, now_ms)?);
    }
    if draft.counted_bytes() > KV_MAX_BYTES {
        return Err(Refusal::KvTooLarge {
            limit_bytes: KV_MAX_BYTES,
            attempted_bytes: draft.counted_bytes(),
        });
    }
    if draft.len() > KV_MAX_KEYS {
        return Err(Refusal::TooManyKeys {
            limit_keys: KV_MAX_KEYS,
        });
    }
    Ok(answers)
}

fn run_one(
    draft: &mut Draft<'_, ScopeKey, Entry>,
    step: &KvOperation,
    operation: usize,
    now_ms: u64,
) -> Result<KvAnswer, Refusal> {
    Ok(match step {
        KvOperation::Set {
            key,
            value,
            ttl,
            if_absent,
        } => {
            let is_absent = draft.get(key).is_none();
            if is_absent || !if_absent {
                let expires_ms = ttl.map(|ttl| now_ms.saturating_add(crate::millis(ttl)));
                let value = value.clone();
                draft.put(key, Some(Entry { value, expires_ms }));
            }
            KvAnswer::Set(is_absent || !if_absent)
        }
        KvOperation::Delete { key } => {
            let existed = draft.get(key).is_some();
            if existed {
                draft.put(key, None);
            }
            KvAnswer::Deleted(existed)
        }
        KvOperation::Increment { key, by } => {
            let old = draft.get(key);
            let expires_ms = old.and_then(|old| old.expires_ms);
            let text = old.map_or("0", |old| old.value.as_str());
            let sum = add(text, *by).map_err(|error| match error {
                IntegerError::NotAnInteger => Refusal::NotAnInteger { operation },
                IntegerError::Overflow => Refusal::IntegerOverflow { operation },
            })?;
            let value = ScopeValue::from_stored(sum.to_string());
            draft.put(key, Some(Entry { value, expires_ms }));
            KvAnswer::Value(sum)
        }
        KvOperation::Clear => {
            draft.clear();
            KvAnswer::Cleared
        }
    })
}
