mod idle;
mod writes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::answers::{Answer, Answers};
use crate::budget::Part;
use crate::threads::records::Records;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::{EntryKey, Life, Namespace, Precondition, Refusal, heap};
use threadkeep_store::{
    Entry, EntryHead, EntryPage, EntryRange, KeyOrder, NamespacePage, NamespacePosition,
    NamespaceRecord, Reading, Usage,
};

/// Maximum number of expired entries that one page skips. If many entries expire at the same time, skipping all of them
/// before they are purged would hold the lock for too long.
const EXPIRED_SKIPPED_MAX: usize = 10_000;

/// All namespaces. Expired entries are hidden immediately, and freed by the purge.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    spaces: HashMap<Namespace, Space>,
    order: BTreeSet<NamespacePosition>,
    /// Entries, sorted by expiry. May include entries of an ended namespace with a name that is in use again.
    ends: BTreeSet<EntryEnd>,
    idle: BTreeSet<(u64, Namespace)>,
    ended: Vec<Space>,
    pub(super) answers: Answers,
    heap_bytes: u64,
}

type EntryEnd = (u64, Namespace, EntryKey, Life);

/// Entries and results that are freed after the lock is released, because they can be large.
#[derive(Debug, Default)]
pub(crate) struct RemovedContent {
    entries: Vec<Entry>,
    answers: Vec<Records<Answer>>,
}

#[derive(Debug)]
struct Space {
    record: NamespaceRecord,
    entries: BTreeMap<EntryKey, Entry>,
    bytes: u64,
    last_used_ms: u64,
    /// Time at which the namespace is queued in [`Spaces::idle`].
    idle_check_ms: Option<u64>,
}

impl Spaces {
    pub(crate) fn len(&self) -> usize {
        let spaces = self.spaces.values().chain(&self.ended);
        let entries: usize = spaces.map(|space| space.entries.len()).sum();
        entries + self.answers.len()
    }

    /// Moves expired entries, entries of idle namespaces, and expired results into `removed`, up to `limit` of each.
    /// Returns whether more expired or ended data may remain.
    pub(crate) fn sweep(
        &mut self,
        now_ms: u64,
        limit: usize,
        removed: &mut RemovedContent,
    ) -> bool {
        let is_more = [
            self.purge(now_ms, limit, removed),
            self.end_idle(now_ms, limit),
            self.free_ended(limit, removed),
            self.answers.sweep(now_ms, limit, &mut removed.answers),
        ];
        is_more.contains(&true)
    }

    /// Moves up to `limit` expired entries into `removed`. Returns whether more expired entries may remain.
    pub(crate) fn purge(
        &mut self,
        now_ms: u64,
        limit: usize,
        removed: &mut RemovedContent,
    ) -> bool {
        for _ in 0..limit {
            match self.ends.first() {
                Some((ends_ms, ..)) if *ends_ms <= now_ms => {}
                _ => return false,
            }
            // an entry of an ended namespace is freed with the namespace
            if let Some((_, namespace, key, life)) = self.ends.pop_first()
                && self.life_of(&namespace, &key) == Some(life)
            {
                removed.entries.extend(self.remove(&namespace, &key));
            }
        }
        true
    }

    fn life_of(&self, namespace: &Namespace, key: &EntryKey) -> Option<Life> {
        let entry = self.spaces.get(namespace)?.entries.get(key)?;
        Some(entry.head.stamp.life)
    }

    pub(crate) fn read(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
        now_ms: u64,
    ) -> Option<Entry> {
        let space = self.use_space(namespace, now_ms)?;
        let entry = space.entries.get_mut(key)?;
        if !entry.head.lives(now_ms) {
            return None;
        }
        if reading == Reading::Use {
            space.last_used_ms = space.last_used_ms.max(now_ms);
            let mut end = end_of(entry, namespace, key);
            if let Some(new_ms) = entry.note_use(now_ms) {
                let entry = entry.clone();
                self.ends.remove(&end);
                end.0 = new_ms;
                self.ends.insert(end);
                return Some(entry);
            }
        }
        Some(entry.clone())
    }

    pub(super) fn heads(
        &mut self,
        namespace: &Namespace,
        keys: &[EntryKey],
        now_ms: u64,
    ) -> Vec<Option<EntryHead>> {
        let space = self.use_space(namespace, now_ms);
        let head = |key| {
            let entry = space.as_ref()?.entries.get(key)?;
            Some(entry.head.clone()).filter(|head| head.lives(now_ms))
        };
        keys.iter().map(head).collect()
    }

    pub(crate) fn list(
        &mut self,
        namespace: &Namespace,
        requested: EntryRange<'_>,
        limit: usize,
        now_ms: u64,
    ) -> EntryPage {
        let EntryRange {
            prefix,
            after,
            order,
        } = requested;
        let mut page = EntryPage {
            entries: Vec::new(),
            next: None,
        };
        let Some(space) = self.use_space(namespace, now_ms) else {
            return page;
        };
        let entries = &space.entries;
        let after = after.map(EntryKey::as_str);
        // `end` sorts after all keys with the prefix; it need not be a valid key
        let end = [prefix, &"\u{10ffff}".repeat(EntryKey::MAX_BYTES / 4 + 1)].concat();
        let candidates: &mut dyn Iterator<Item = _> = match order {
            KeyOrder::Ascending => {
                let from = match after {
                    Some(after) if after >= prefix => Bound::Excluded(after),
                    _ => Bound::Included(prefix),
                };
                &mut entries.range::<str, _>((from, Bound::Unbounded))
            }
            KeyOrder::Descending => {
                let to = after.unwrap_or(&end).min(&end);
                let range = (Bound::Unbounded, Bound::Excluded(to));
                &mut entries.range::<str, _>(range).rev()
            }
        };
        let mut last: Option<&EntryKey> = None;
        let candidates = candidates.take_while(|(key, _)| key.as_str().starts_with(prefix));
        for (examined, (key, entry)) in candidates.enumerate() {
            let lives = entry.head.lives(now_ms);
            if examined == limit.saturating_add(EXPIRED_SKIPPED_MAX)
                || lives && page.entries.len() == limit
            {
                page.next = last.cloned();
                break;
            }
            if lives {
                page.entries.push((key.clone(), entry.head.clone()));
            }
            last = Some(key);
        }
        page
    }

    pub(super) fn open_record(&mut self, namespace: &Namespace, now_ms: u64) -> NamespaceRecord {
        self.open(namespace, now_ms).record.clone()
    }

    pub(crate) fn record(&self, namespace: &Namespace, now_ms: u64) -> Option<NamespaceRecord> {
        let space = self.spaces.get(namespace);
        let space = space.filter(|space| space.record.lives(now_ms))?;
        Some(space.record.clone())
    }

    pub(super) fn list_namespaces(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
        now_ms: u64,
    ) -> NamespacePage {
        let before = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut positions = self.order.range((Bound::Unbounded, before)).rev();
        let listed: Vec<_> = positions.by_ref().take(limit).collect();
        let record = |position: &&NamespacePosition| self.record(&position.namespace, now_ms);
        let last = listed.last().map(|position| (*position).clone());
        NamespacePage {
            records: listed.iter().filter_map(record).collect(),
            next: last.filter(|_| positions.next().is_some()),
        }
    }

    /// Returns the usage of a namespace. Call this after the purge, so that expired entries are not counted.
    pub(crate) fn usage(&self, namespace: &Namespace, now_ms: u64) -> Usage {
        let space = self.spaces.get(namespace);
        let Some(space) = space.filter(|space| space.record.lives(now_ms)) else {
            return Usage::default();
        };
        Usage {
            entries: space.entries.len() as u64,
            bytes: space.bytes,
            last_used_ms: Some(space.last_used_ms).filter(|_| !space.entries.is_empty()),
        }
    }

    /// Moves up to `limit` entries of a namespace into `removed`. If no entries are left, deletes the namespace.
    /// Returns how many of the moved entries had not expired, or `None` if the namespace no longer exists.
    pub(crate) fn delete_batch(
        &mut self,
        namespace: &Namespace,
        limit: usize,
        now_ms: u64,
        removed: &mut RemovedContent,
    ) -> Option<u64> {
        self.end_if_idle(namespace, now_ms);
        let space = self.spaces.get(namespace)?;
        let batch = space.entries.iter().take(limit);
        let batch: Vec<_> = batch
            .map(|(key, entry)| (key.clone(), entry.head.lives(now_ms)))
            .collect();
        if batch.is_empty() {
            self.check_idle_at(namespace, None);
            let space = self.spaces.remove(namespace)?;
            self.heap_bytes -= shared_bytes(namespace.as_str());
            self.order.remove(&space.record.position());
            if self.spaces.len() < self.spaces.capacity() / 4 {
                self.spaces.shrink_to_fit();
            }
            return None;
        }
        for (key, _) in &batch {
            removed.entries.extend(self.remove(namespace, key));
        }
        Some(batch.iter().filter(|(_, lived)| *lived).count() as u64)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<Option<Entry>, Refusal> {
        let space = self.use_space(namespace, now_ms);
        let entry = space.and_then(|space| space.entries.get(key));
        let entry = entry.filter(|entry| entry.head.lives(now_ms));
        EntryHead::check(entry.map(|entry| &entry.head), precondition)?;
        Ok(entry.cloned())
    }

    fn open(&mut self, namespace: &Namespace, now_ms: u64) -> &mut Space {
        self.end_if_idle(namespace, now_ms);
        self.spaces.entry(namespace.clone()).or_insert_with(|| {
            let record = NamespaceRecord::new(namespace.clone(), now_ms);
            self.order.insert(record.position());
            self.heap_bytes += shared_bytes(namespace.as_str());
            Space {
                record,
                entries: BTreeMap::new(),
                bytes: 0,
                last_used_ms: 0,
                idle_check_ms: None,
            }
        })
    }

    fn insert(&mut self, namespace: &Namespace, key: &EntryKey, entry: Entry, now_ms: u64) {
        if entry.head.expires_ms.is_some() {
            self.ends.insert(end_of(&entry, namespace, key));
        }
        let held_bytes = held_bytes(key, &entry);
        let space = self.open(namespace, now_ms);
        space.bytes += entry.head.size_bytes;
        space.last_used_ms = space.last_used_ms.max(now_ms);
        let before = space.tree_bytes();
        space.entries.insert(key.clone(), entry);
        let grown_bytes = space.tree_bytes() - before;
        self.heap_bytes += held_bytes + grown_bytes;
    }

    fn remove(&mut self, namespace: &Namespace, key: &EntryKey) -> Option<Entry> {
        let space = self.spaces.get_mut(namespace)?;
        let before = space.tree_bytes();
        let entry = space.entries.remove(key)?;
        space.bytes -= entry.head.size_bytes;
        self.heap_bytes -= held_bytes(key, &entry) + (before - space.tree_bytes());
        if entry.head.expires_ms.is_some() {
            self.ends.remove(&end_of(&entry, namespace, key));
        }
        Some(entry)
    }
}

impl Space {
    fn tree_bytes(&self) -> u64 {
        heap::tree::<(EntryKey, Entry)>(self.entries.len())
    }
}

impl Heap for Spaces {
    fn heap_bytes(&self) -> u64 {
        heap::table::<(Namespace, Space)>(self.spaces.capacity())
            + heap::tree::<NamespacePosition>(self.order.len())
            + heap::tree::<EntryEnd>(self.ends.len())
            + heap::tree::<(u64, Namespace)>(self.idle.len())
            + heap::array::<Space>(self.ended.capacity())
            + self.answers.heap_bytes()
            + self.heap_bytes
    }
}

impl Part for Spaces {}

/// Returns the heap size of a key and its entry, including the extra block that is allocated when the body is first
/// shared with a reader.
fn held_bytes(key: &EntryKey, entry: &Entry) -> u64 {
    let encoding = entry.head.content_encoding.as_ref();
    shared_bytes(key.as_str())
        + shared_bytes("")
        + heap::block(entry.body.len())
        + heap::block(entry.head.content_type.as_str().len())
        + encoding.map_or(0, |encoding| heap::block(encoding.as_str().len()))
}

fn shared_bytes(text: &str) -> u64 {
    heap::block(2 * size_of::<usize>() + text.len())
}

/// Returns the position of an entry in [`Spaces::ends`].
fn end_of(entry: &Entry, namespace: &Namespace, key: &EntryKey) -> EntryEnd {
    let ends_ms = entry.head.expires_ms.unwrap_or(u64::MAX);
    let life = entry.head.stamp.life;
    (ends_ms, namespace.clone(), key.clone(), life)
}

#[cfg(test)]
mod tests;
