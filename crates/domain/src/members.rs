use std::collections::BTreeMap;

use super::{Heap, heap};

pub(super) trait Member<K>: Heap + Clone {
    fn counted_bytes(&self, key: &K) -> u64;
}

#[derive(Debug, Clone)]
pub(super) struct Members<K, V> {
    values: BTreeMap<K, V>,
    counted_bytes: u64,
    heap_bytes: u64,
}

pub(super) struct Draft<'a, K, V> {
    base: &'a Members<K, V>,
    changes: Changes<K, V>,
    len: u32,
}

#[derive(Debug)]
pub(super) struct Changes<K, V> {
    is_cleared: bool,
    /// `None` removes the member.
    values: BTreeMap<K, Option<V>>,
    counted_bytes: u64,
}

impl<K: Ord + Clone + Heap, V: Member<K>> Members<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.values.iter()
    }

    pub(super) fn len(&self) -> u32 {
        self.values.len() as u32
    }

    pub(super) fn counted_bytes(&self) -> u64 {
        self.counted_bytes
    }

    pub(super) fn draft(&self) -> Draft<'_, K, V> {
        Draft {
            base: self,
            changes: Changes {
                is_cleared: false,
                values: BTreeMap::new(),
                counted_bytes: self.counted_bytes,
            },
            len: self.len(),
        }
    }

    pub(super) fn commit(&mut self, changes: Changes<K, V>) {
        if changes.is_cleared {
            self.values.clear();
            self.heap_bytes = 0;
        }
        for (key, value) in changes.values {
            let key_bytes = key.heap_bytes();
            let old = match value {
                Some(value) => {
                    self.heap_bytes += key_bytes + value.heap_bytes();
                    self.values.insert(key, value)
                }
                None => self.values.remove(&key),
            };
            if let Some(old) = old {
                self.heap_bytes -= key_bytes + old.heap_bytes();
            }
        }
        self.counted_bytes = changes.counted_bytes;
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&V) -> bool) {
        let Self {
            values,
            counted_bytes,
            heap_bytes,
        } = self;
        values.retain(|key, value| {
            let is_kept = is_kept(value);
            if !is_kept {
                *counted_bytes -= value.counted_bytes(key);
                *heap_bytes -= key.heap_bytes() + value.heap_bytes();
            }
            is_kept
        });
    }
}

impl<K, V> Default for Members<K, V> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            counted_bytes: 0,
            heap_bytes: 0,
        }
    }
}

impl<K: Ord + Clone + Heap, V: Member<K>> FromIterator<(K, V)> for Members<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let values: BTreeMap<K, V> = members.into_iter().collect();
        let counted = values.iter().map(|(key, value)| value.counted_bytes(key));
        let held = values
            .iter()
            .map(|(key, value)| key.heap_bytes() + value.heap_bytes());
        Self {
            counted_bytes: counted.sum(),
            heap_bytes: held.sum(),
            values,
        }
    }
}

impl<K, V> Heap for Members<K, V> {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<(K, V)>(self.values.len()) + self.heap_bytes
    }
}

impl<'a, K: Ord + Clone + Heap, V: Member<K>> Draft<'a, K, V> {
    pub(super) fn base(&self) -> &'a Members<K, V> {
        self.base
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        match self.changes.values.get(key) {
            Some(value) => value.as_ref(),
            None if self.changes.is_cleared => None,
            None => self.base.get(key),
        }
    }

    /// Takes a value out of the draft, so that the caller can change it and put it back. Moves a value that this draft
    /// has already changed, because a clone for each push would take quadratic time in total. Clones other values.
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        match self.changes.values.get_mut(key) {
            Some(changed) => {
                let value = changed.take()?;
                self.changes.counted_bytes -= value.counted_bytes(key);
                self.len -= 1;
                Some(value)
            }
            None if self.changes.is_cleared => None,
            None => self.base.get(key).cloned(),
        }
    }

    /// Returns whether a value existed.
    pub(super) fn put(&mut self, key: &K, value: Option<V>) -> bool {
        let old = self.get(key).map(|old| old.counted_bytes(key));
        if let Some(bytes) = old {
            self.changes.counted_bytes -= bytes;
            self.len -= 1;
        }
        if let Some(value) = &value {
            self.changes.counted_bytes += value.counted_bytes(key);
            self.len += 1;
        }
        self.changes.values.insert(key.clone(), value);
        old.is_some()
    }

    pub(super) fn clear(&mut self) {
        self.changes = Changes {
            is_cleared: true,
            values: BTreeMap::new(),
            counted_bytes: 0,
        };
        self.len = 0;
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn counted_bytes(&self) -> u64 {
        self.changes.counted_bytes
    }

    pub(super) fn into_changes(self) -> Changes<K, V> {
        self.changes
    }
}

impl<K: Ord + Clone, V> Changes<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty() && !self.is_cleared
    }

    pub(super) fn keys<'a>(&'a self, of: &'a Members<K, V>) -> impl Iterator<Item = &'a K> {
        let cleared = self.is_cleared.then(|| of.values.keys());
        cleared.into_iter().flatten().chain(self.values.keys())
    }
}
