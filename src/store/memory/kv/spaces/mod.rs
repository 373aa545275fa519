//! Entries by namespace and key, and when they end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::domain::heap::Heap;
use crate::domain::{EntryKey, Life, Lifetime, Namespace, Precondition, Refusal, Stamp, heap};
use crate::store::memory::budget::Part;
use crate::store::{
    Entry, EntryHead, EntryPage, NamespacePage, NamespacePlace, NamespaceRecord, NewEntry, Put,
    Reading, Usage, millis,
};

/// Expired entries that one list skips in addition to those that it finds: many can expire at once, and until they are
/// purged a page that skips them all holds the lock for that long.
const PASSED_OVER: usize = 10_000;

/// All namespaces. Expired entries are hidden at once, and freed by the purge.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    spaces: HashMap<Namespace, Space>,
    order: BTreeSet<NamespacePlace>,
    /// Entries by when they end.
    ends: BTreeSet<(u64, Namespace, EntryKey)>,
    /// Heap bytes of namespaces and entries.
    heap_bytes: u64,
}

#[derive(Debug)]
struct Space {
    record: NamespaceRecord,
    entries: BTreeMap<EntryKey, Entry>,
    bytes: u64,
    last_used_ms: u64,
}

impl Spaces {
    pub(crate) fn len(&self) -> usize {
        self.spaces.values().map(|space| space.entries.len()).sum()
    }

    /// Moves up to `limit` expired entries into `gone`: bodies, which can be large, are freed after the lock is
    /// released. Returns whether there are more.
    pub(crate) fn purge(&mut self, now_ms: u64, limit: usize, gone: &mut Vec<Entry>) -> bool {
        for _ in 0..limit {
            match self.ends.first() {
                Some((ends_ms, ..)) if *ends_ms <= now_ms => {}
                _ => return false,
            }
            if let Some((_, namespace, key)) = self.ends.pop_first() {
                gone.extend(self.remove(&namespace, &key));
            }
        }
        true
    }

    /// The entry, with what the reading does to it.
    pub(crate) fn read(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
        now_ms: u64,
    ) -> Option<Entry> {
        let space = self.spaces.get_mut(namespace)?;
        let entry = space.entries.get_mut(key)?;
        if !entry.head.lives(now_ms) {
            return None;
        }
        if reading == Reading::Use {
            entry.uses += 1;
            entry.last_used_ms = now_ms;
            space.last_used_ms = space.last_used_ms.max(now_ms);
            if let Some((old_ms, new_ms)) = entry.head.prolong(now_ms) {
                let mut end = (old_ms, namespace.clone(), key.clone());
                self.ends.remove(&end);
                end.0 = new_ms;
                self.ends.insert(end);
            }
        }
        Some(entry.clone())
    }

    pub(super) fn put(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        new: &NewEntry,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<Put, Refusal> {
        let old = self.check(namespace, key, precondition, now_ms)?;
        let default = self.open(namespace, now_ms).record.default_lifetime;
        let lifetime = new.lifetime.or(default).unwrap_or(new.default_lifetime);
        let stamp = match &old {
            Some(old) => Stamp {
                version: old.head.stamp.version + 1,
                life: old.head.stamp.life,
            },
            None => Stamp {
                version: 1,
                life: Life::random(),
            },
        };
        let expires_ms = match lifetime {
            Lifetime::Forever => None,
            Lifetime::For(time) => Some(now_ms.saturating_add(millis(time))),
        };
        let entry = Entry {
            head: EntryHead {
                stamp,
                size_bytes: new.body.len() as u64,
                content_type: new.content_type.clone(),
                content_encoding: new.content_encoding.clone(),
                created_ms: old.as_ref().map_or(now_ms, |old| old.head.created_ms),
                updated_ms: now_ms,
                lifetime,
                expires_ms,
            },
            uses: old.map_or(0, |old| old.uses),
            last_used_ms: now_ms,
            body: new.body.clone(),
        };
        self.remove(namespace, key);
        self.insert(namespace, key, entry, now_ms);
        Ok(Put { stamp, expires_ms })
    }

    /// Whether there was such an entry.
    pub(super) fn delete(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<bool, Refusal> {
        let existed = self.check(namespace, key, precondition, now_ms)?.is_some();
        self.remove(namespace, key);
        Ok(existed)
    }

    pub(crate) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        limit: usize,
        now_ms: u64,
    ) -> EntryPage {
        // a prefix need not be a key, such as an empty one
        let from = match after.map(EntryKey::as_str) {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let space = self.spaces.get(namespace).into_iter();
        let range = space.flat_map(|space| space.entries.range::<str, _>((from, Bound::Unbounded)));
        let mut page = EntryPage {
            entries: Vec::new(),
            next: None,
        };
        let mut last: Option<&EntryKey> = None;
        let found = range.take_while(|(key, _)| key.as_str().starts_with(prefix));
        for (looked, (key, entry)) in found.enumerate() {
            let lives = entry.head.lives(now_ms);
            if looked == limit.saturating_add(PASSED_OVER) || lives && page.entries.len() == limit {
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

    pub(super) fn set_default(
        &mut self,
        namespace: &Namespace,
        lifetime: Option<Lifetime>,
        now_ms: u64,
    ) -> NamespaceRecord {
        let space = self.open(namespace, now_ms);
        space.record.default_lifetime = lifetime;
        space.record.clone()
    }

    pub(crate) fn record(&self, namespace: &Namespace) -> Option<NamespaceRecord> {
        self.spaces.get(namespace).map(|space| space.record.clone())
    }

    pub(super) fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> NamespacePage {
        let before = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut places = self.order.range((Bound::Unbounded, before)).rev();
        let listed: Vec<_> = places.by_ref().take(limit).collect();
        let record = |place: &&NamespacePlace| self.record(&place.namespace);
        let last = listed.last().map(|place| (*place).clone());
        NamespacePage {
            records: listed.iter().filter_map(record).collect(),
            next: last.filter(|_| places.next().is_some()),
        }
    }

    /// The usage of a namespace once all expired entries are purged.
    pub(crate) fn usage(&self, namespace: &Namespace) -> Usage {
        let Some(space) = self.spaces.get(namespace) else {
            return Usage::default();
        };
        Usage {
            entries: space.entries.len() as u64,
            bytes: space.bytes,
            last_used_ms: Some(space.last_used_ms).filter(|_| !space.entries.is_empty()),
        }
    }

    /// Moves some entries of a namespace into `gone`, and deletes the namespace after the last. Returns the number of
    /// those that had not expired; none if it no longer exists.
    pub(crate) fn delete_some(
        &mut self,
        namespace: &Namespace,
        limit: usize,
        now_ms: u64,
        gone: &mut Vec<Entry>,
    ) -> Option<u64> {
        let space = self.spaces.get(namespace)?;
        let some = space.entries.iter().take(limit);
        let some: Vec<_> = some
            .map(|(key, entry)| (key.clone(), entry.head.lives(now_ms)))
            .collect();
        if some.is_empty() {
            let space = self.spaces.remove(namespace)?;
            self.heap_bytes -= shared_bytes(namespace.as_str());
            self.order.remove(&space.record.place());
            if self.spaces.len() < self.spaces.capacity() / 4 {
                self.spaces.shrink_to_fit();
            }
            return None;
        }
        for (key, _) in &some {
            gone.extend(self.remove(namespace, key));
        }
        Some(some.iter().filter(|(_, lived)| *lived).count() as u64)
    }

    /// The entry that lives, if it is what the precondition says.
    fn check(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<Option<Entry>, Refusal> {
        let space = self.spaces.get(namespace);
        let entry = space.and_then(|space| space.entries.get(key));
        let entry = entry.filter(|entry| entry.head.lives(now_ms));
        let current = entry.map_or(Stamp::default(), |entry| entry.head.stamp);
        match precondition {
            Some(wanted) if !wanted.is_met_by(current) => Err(Refusal::VersionMismatch { current }),
            _ => Ok(entry.cloned()),
        }
    }

    fn open(&mut self, namespace: &Namespace, now_ms: u64) -> &mut Space {
        self.spaces.entry(namespace.clone()).or_insert_with(|| {
            let record = NamespaceRecord {
                namespace: namespace.clone(),
                created_ms: now_ms,
                default_lifetime: None,
            };
            self.order.insert(record.place());
            self.heap_bytes += shared_bytes(namespace.as_str());
            Space {
                record,
                entries: BTreeMap::new(),
                bytes: 0,
                last_used_ms: 0,
            }
        })
    }

    fn insert(&mut self, namespace: &Namespace, key: &EntryKey, entry: Entry, now_ms: u64) {
        if let Some(ends_ms) = entry.head.expires_ms {
            self.ends.insert((ends_ms, namespace.clone(), key.clone()));
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
        if let Some(ends_ms) = entry.head.expires_ms {
            self.ends.remove(&(ends_ms, namespace.clone(), key.clone()));
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
            + heap::tree::<NamespacePlace>(self.order.len())
            + heap::tree::<(u64, Namespace, EntryKey)>(self.ends.len())
            + self.heap_bytes
    }
}

impl Part for Spaces {}

/// Heap bytes of a key and its entry. A body that was read is shared through a block of its
/// own.
fn held_bytes(key: &EntryKey, entry: &Entry) -> u64 {
    let encoding = entry.head.content_encoding.as_ref();
    shared_bytes(key.as_str())
        + shared_bytes("")
        + heap::block(entry.body.len())
        + heap::block(entry.head.content_type.as_str().len())
        + encoding.map_or(0, |encoding| heap::block(encoding.as_str().len()))
}

/// The bytes of a shared text, counted by each owner.
fn shared_bytes(text: &str) -> u64 {
    heap::block(2 * size_of::<usize>() + text.len())
}

impl EntryHead {
    fn lives(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }

    /// Gives it its whole lifetime again, if less than half is left: its end before and now.
    fn prolong(&mut self, now_ms: u64) -> Option<(u64, u64)> {
        let (Some(expires_ms), Lifetime::For(time)) = (self.expires_ms, self.lifetime) else {
            return None;
        };
        let lifetime_ms = millis(time);
        if expires_ms.saturating_sub(now_ms).saturating_mul(2) >= lifetime_ms {
            return None;
        }
        let new_ms = now_ms.saturating_add(lifetime_ms);
        self.expires_ms = Some(new_ms);
        Some((expires_ms, new_ms))
    }
}

impl NamespaceRecord {
    fn place(&self) -> NamespacePlace {
        NamespacePlace {
            created_ms: self.created_ms,
            namespace: self.namespace.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
