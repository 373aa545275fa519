use std::collections::HashMap;

use super::arrays::Elements;
use super::javascript;
use super::seen::{NEWEST, Seen};
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
    /// Creates a snapshot of a state, given as compact JSON from a store.
    #[must_use]
    pub fn of(state: &str) -> Self {
        let mut given = Self::default();
        let mut scratch = Vec::new();
        for (key, value) in members(state) {
            // stores have only valid keys
            if let Ok(key) = Key::any_from_json(key) {
                given.bytes += key.as_str().len() + KEY_OVERHEAD_BYTES;
                given.values.insert(key, look_at(value, &mut scratch));
            }
        }
        given
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

pub(super) fn look_at(value: &str, scratch: &mut Vec<u8>) -> Seen {
    if value.starts_with('[') {
        return Elements::of(crate::elements(value)).seen();
    }
    scratch.clear();
    javascript::write(value, scratch);
    Seen {
        digest: Fingerprint::of(&[scratch]),
        len: None,
        newest: [0; NEWEST],
    }
}
