//! Keeps scopes in the memory of this process.

use std::collections::BTreeSet;

use super::{
    HistoryFrom, HistoryPage, HistoryPreview, ItemPosition, Originals, PREVIEW_BYTES_MAX,
    ScopeParts, ScopeView,
};
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::{
    Appended, Compacted, Compaction, HistorySummary, ItemId, ScopeDocument, ScopeImage, ScopeKey,
    ScopeValue, ScopeWrite, ScopeWritten, Segment,
};
use threadkeep_domain::{
    EventKind, Json, Life, NAMED_KEY_BYTES_MAX, NAMED_KEYS_MAX, Refusal, Stamp,
};

/// A scope in memory, with its document, version, life and times. The version is 0 before the first write.
#[derive(Debug, Clone)]
pub struct HeldScope {
    document: ScopeDocument,
    version: u64,
    life: Life,
    created_ms: u64,
    updated_ms: u64,
}

impl HeldScope {
    /// Creates a scope that has not been written.
    pub fn new(life: Life, now_ms: u64) -> Self {
        Self {
            document: ScopeDocument::default(),
            version: 0,
            life,
            created_ms: now_ms,
            updated_ms: now_ms,
        }
    }

    /// Restores a scope from an image, in a new life.
    pub fn of_image(image: &ScopeImage, life: Life) -> Self {
        Self {
            document: ScopeDocument::of_image(image),
            version: image.version,
            life,
            created_ms: image.created_ms,
            updated_ms: image.updated_ms,
        }
    }

    /// Exports the scope.
    pub fn image(&self, now_ms: u64) -> ScopeImage {
        let times = (self.created_ms, self.updated_ms);
        self.document.image(self.version, times, now_ms)
    }

    /// Moves the scope to a different life.
    pub fn reborn(self, life: Life) -> Self {
        Self { life, ..self }
    }

    /// Returns the version and the life, or the default stamp before the first write.
    pub fn stamp(&self) -> Stamp {
        match self.version {
            0 => Stamp::default(),
            version => Stamp {
                version,
                life: self.life,
            },
        }
    }

    /// Applies a write atomically. The caller must first look for an answer stored under the idempotency key.
    pub fn write(&mut self, write: &ScopeWrite<'_>, now_ms: u64) -> Result<ScopeDone, Refusal> {
        let exists = self.version > 0;
        if write.makes && exists {
            return Err(Refusal::ScopeExists);
        }
        if write.policy.is_made && !write.makes && !exists {
            return Err(Refusal::ScopeNotFound);
        }
        let applied = self.document.apply(write, self.stamp(), now_ms)?;
        if applied.is_change {
            self.version += 1;
            self.updated_ms = now_ms;
        }
        Ok(ScopeDone {
            written: ScopeWritten {
                stamp: self.stamp(),
                kv_bytes: self.document.kv_bytes(),
                keys: self.document.keys(),
                answers: applied.answers,
                appended: applied.appended,
                removed: applied.removed,
                taken: applied.taken,
                replayed: false,
            },
            keys: applied.keys,
            tasks: write.tasks.is_some(),
            is_change: applied.is_change,
        })
    }

    /// Compacts the history atomically. The caller must first look for an answer stored under the idempotency key.
    pub fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        now_ms: u64,
    ) -> Result<Compacted, Refusal> {
        let (segment, dropped_segments) = self.document.compact(compaction, now_ms)?;
        self.version += 1;
        self.updated_ms = now_ms;
        Ok(Compacted {
            stamp: self.stamp(),
            segment,
            dropped_segments,
            replayed: false,
        })
    }

    /// Returns the requested parts.
    pub fn view(
        &mut self,
        parts: &ScopeParts<'_>,
        expires_ms: Option<u64>,
        now_ms: u64,
    ) -> ScopeView {
        self.document.purge(now_ms);
        let document = &self.document;
        let value = |key| document.get(key, now_ms).cloned();
        let values: Vec<Option<ScopeValue>> = parts.values.iter().map(value).collect();
        let keys = document.iter(now_ms).map(|(key, _)| key);
        let keys = parts.keys.then(|| keys.cloned().collect());
        let tasks = parts.tasks.then(|| document.tasks().clone());
        let record = document.record().filter(|_| parts.record);
        ScopeView {
            stamp: self.stamp(),
            kv_bytes: document.kv_bytes(),
            key_count: document.keys(),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            expires_ms,
            is_sealed: document.is_sealed(),
            values,
            keys: keys.unwrap_or_default(),
            tasks: tasks.unwrap_or_default(),
            tasks_stamp: Stamp {
                version: document.tasks_version(),
                life: self.stamp().life,
            },
            record: record.cloned(),
            history: document.history().summary(),
            has_segments: !document.history().segments(now_ms).is_empty(),
        }
    }

    /// Returns the extent of the history.
    pub fn history(&self) -> HistorySummary {
        self.document.history().summary()
    }

    /// Summarizes the history for a list of threads. Includes the values of up to `opening` of the oldest items.
    pub fn preview(&self, opening: usize) -> HistoryPreview {
        let history = self.document.history();
        let oldest = history.read(0, false, opening);
        HistoryPreview {
            items: history.summary().len(),
            newest_ms: history.newest_ms(),
            opening: oldest.iter().map(|item| beginning(&item.value)).collect(),
        }
    }

    /// Returns the position of a history item.
    pub fn item_position(&self, id: &ItemId) -> Option<ItemPosition> {
        let history = self.document.history();
        let stored = history.position(id).map(|seq| (seq, false));
        let position = stored.or_else(|| history.removed_position(id).map(|seq| (seq, true)));
        position.map(|(seq, is_removed)| ItemPosition { seq, is_removed })
    }

    /// Returns the segments of the history, newest first.
    pub fn segments(&self, now_ms: u64) -> Vec<Segment> {
        self.document.history().segments(now_ms)
    }

    /// Returns history items as they were before compaction, or `None` if the segment does not exist.
    pub fn originals(
        &self,
        which: Originals,
        from: HistoryFrom,
        limit: usize,
        now_ms: u64,
    ) -> Option<HistoryPage> {
        let history = self.document.history();
        let from = match from {
            HistoryFrom::After(seq) => (seq, false),
            HistoryFrom::Before(seq) => (seq, true),
        };
        let items = match which {
            Originals::All => history.read_originals(from, limit, now_ms),
            Originals::OfSegment(number) => history.read_segment(number, from, limit, now_ms)?,
        };
        Some(HistoryPage {
            items,
            summary: history.summary(),
            segments: Vec::new(),
        })
    }

    /// Returns history items.
    pub fn page(&self, from: HistoryFrom, limit: usize, now_ms: u64) -> HistoryPage {
        let history = self.document.history();
        HistoryPage {
            items: match from {
                HistoryFrom::After(seq) => history.read(seq, false, limit),
                HistoryFrom::Before(seq) => history.read(seq, true, limit),
            },
            summary: history.summary(),
            segments: history.segments(now_ms),
        }
    }
}

fn beginning(value: &Json) -> Box<str> {
    let value = value.as_str();
    value[..value.floor_char_boundary(PREVIEW_BYTES_MAX)].into()
}

impl Heap for HeldScope {
    fn heap_bytes(&self) -> u64 {
        self.document.heap_bytes()
    }
}

/// The effect of a write.
#[derive(Debug)]
pub struct ScopeDone {
    /// The result for the caller.
    pub written: ScopeWritten,
    keys: BTreeSet<ScopeKey>,
    tasks: bool,
    /// True if the write changed the version.
    pub is_change: bool,
}

/// Returns the event for new items in the history of a thread, or `None` if no item is new.
pub fn appended<'a>(appended: impl IntoIterator<Item = &'a Appended>) -> Option<EventKind> {
    let new = appended.into_iter().filter(|appended| !appended.repeated);
    let mut positions = new.map(|appended| appended.seq);
    let first_seq = positions.next()?;
    Some(EventKind::HistoryAppended {
        first_seq,
        last_seq: positions.last().unwrap_or(first_seq),
    })
}

impl ScopeDone {
    /// Returns the events for the write.
    pub fn events(&self) -> impl Iterator<Item = EventKind> {
        let kv = (!self.keys.is_empty()).then(|| EventKind::KvUpdated {
            keys: names(&self.keys),
        });
        let tasks = self.tasks.then_some(EventKind::TaskListUpdated);
        kv.into_iter().chain(tasks)
    }
}

/// Returns the keys as a JSON array, or `None` if they exceed the limits for keys in an event.
fn names(keys: &BTreeSet<ScopeKey>) -> Option<Json> {
    let texts: Vec<_> = keys.iter().map(|key| key.as_str().to_owned()).collect();
    let names = Json::from_strings(&texts);
    let is_short = keys.len() <= NAMED_KEYS_MAX && names.as_str().len() <= NAMED_KEY_BYTES_MAX;
    is_short.then_some(names)
}

/// Checks that the current version is `expected`, if given.
pub fn check_version(expected: Option<u64>, current: Stamp) -> Result<(), Refusal> {
    match expected {
        Some(expected) if expected != current.version => Err(Refusal::VersionMismatch { current }),
        _ => Ok(()),
    }
}
