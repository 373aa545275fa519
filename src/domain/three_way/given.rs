//! What a client was given of a state.

use std::collections::HashMap;

use super::arrays::Elements;
use super::javascript;
use crate::domain::members::members;
use crate::domain::{Fingerprint, Key};

/// Bytes that a key takes up beside its text.
const BYTES_OF_A_KEY: usize = 136;
/// The newest elements of an array that are known one by one.
pub(super) const NEWEST: usize = 4;

/// A state that a client was given: of each key a digest of its value, so that what it sends back
/// shows what it has changed.
#[derive(Debug, Default)]
pub struct Given {
    values: HashMap<Key, Seen>,
    bytes: usize,
}

/// What a value was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Of the value as the client reads it.
    pub(super) digest: Fingerprint,
    /// Number of elements, of an array.
    pub(super) len: Option<usize>,
    /// Of an array, digests of its newest elements, the newest first; 0 past the oldest.
    pub(super) newest: [u64; NEWEST],
}

impl Given {
    /// What a state is to a client: compact JSON of an object, as a store reads it.
    #[must_use]
    pub fn of(state: &str) -> Self {
        let mut given = Self::default();
        let mut scratch = Vec::new();
        for (key, value) in members(state) {
            // a store has no other keys
            if let Ok(key) = Key::any_from_json(key) {
                given.bytes += key.as_str().len() + BYTES_OF_A_KEY;
                given.values.insert(key, Seen::of(value, &mut scratch));
            }
        }
        given
    }

    /// About what it takes up in memory.
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

impl Seen {
    /// What a value is, given as compact JSON.
    pub(super) fn of(value: &str, scratch: &mut Vec<u8>) -> Self {
        if value.starts_with('[') {
            return Elements::of(crate::domain::elements(value)).seen();
        }
        scratch.clear();
        javascript::write(value, scratch);
        Self {
            digest: Fingerprint::of(&[scratch]),
            len: None,
            newest: [0; NEWEST],
        }
    }
}
