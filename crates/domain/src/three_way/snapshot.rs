use std::collections::HashMap;

use super::arrays::Elements;
use super::javascript;
use super::seen::{NEWEST_DIGESTS, Seen};
use crate::json::members::members;
use crate::{Fingerprint, Key};

const KEY_OVERHEAD_BYTES: usize = 136;

/// Digests of a state that a client received. A comparison with a later save shows what the client changed.
#[derive(Debug, Default)]
pub struct Snapshot {
    values: HashMap<Key, Seen>,
    bytes: usize,
}

impl Snapshot {
    /// Creates a snapshot of `state`, which is compact JSON from a store.
    #[must_use]
    pub fn of(state: &str) -> Self {
        let mut snapshot = Self::default();
        let mut scratch = Vec::new();
        for (key, value) in members(state) {
            // stores have only valid keys
            if let Ok(key) = Key::any_from_json(key) {
                snapshot.bytes += key.as_str().len() + KEY_OVERHEAD_BYTES;
                snapshot
                    .values
                    .insert(key, digest_json(value, &mut scratch));
            }
        }
        snapshot
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Seen> {
        self.values.get(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.values.keys()
    }
}

pub(super) fn digest_json(value: &str, scratch: &mut Vec<u8>) -> Seen {
    if value.starts_with('[') {
        return Elements::of(crate::elements(value)).seen();
    }
    scratch.clear();
    javascript::write(value, scratch);
    Seen {
        digest: Fingerprint::of(&[scratch]),
        len: None,
        newest: [0; NEWEST_DIGESTS],
    }
}
