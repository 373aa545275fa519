//! A snapshot: the state that a client received.

use std::collections::HashMap;

use super::arrays::Elements;
use super::javascript;
use super::seen::{NEWEST, Seen};
use crate::json::members::members;
use crate::{Fingerprint, Key};

/// Bytes that a key takes up in addition to its text.
const BYTES_OF_A_KEY: usize = 136;

/// A state that a client received, as a digest of each value, so that a save reveals the client's
/// changes.
#[derive(Debug, Default)]
pub struct Snapshot {
    values: HashMap<Key, Seen>,
    bytes: usize,
}

impl Snapshot {
    /// The snapshot of a state, which is the compact JSON of an object, as a store reads it.
    #[must_use]
    pub fn of(state: &str) -> Self {
        let mut given = Self::default();
        let mut scratch = Vec::new();
        for (key, value) in members(state) {
            // a store has no other keys
            if let Ok(key) = Key::any_from_json(key) {
                given.bytes += key.as_str().len() + BYTES_OF_A_KEY;
                given.values.insert(key, look_at(value, &mut scratch));
            }
        }
        given
    }

    /// The approximate memory that it takes.
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

/// The facts about a value of compact JSON.
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
