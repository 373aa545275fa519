use std::fmt;

use super::array::Array;
use super::text::{Json, JsonError, MAX_DEPTH, compact};
use crate::Heap;

/// A value of a thread's state, as opaque JSON text or as the elements of an array.
#[derive(Clone)]
pub enum Value {
    /// Any value except an array.
    Text(Json),
    /// An array, stored for fast appends.
    Array(Array),
}

/// The requested part of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// The last elements of the array, up to this number.
    Tail(u64),
    /// Up to `limit` elements, starting at index `offset`.
    Range {
        /// Zero-based index of the first element. If the array ends before this index, the part is empty.
        offset: u64,
        /// Maximum number of elements; `None` for no limit.
        limit: Option<u64>,
    },
}

impl Slice {
    /// Returns the index of the first element and the number of elements that the part selects from an array with `len`
    /// elements.
    #[must_use]
    pub fn of(self, len: u64) -> (u64, u64) {
        match self {
            Self::Tail(count) => (len.saturating_sub(count), len.min(count)),
            Self::Range { offset, limit } => {
                let from = offset.min(len);
                (from, (len - from).min(limit.unwrap_or(u64::MAX)))
            }
        }
    }
}

impl Value {
    /// Parses a JSON value of up to [`MAX_DEPTH`] levels.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let compact = compact(text, b'\n', MAX_DEPTH)?;
        let elements = compact
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        Ok(match elements {
            Some(elements) => Self::Array(Array::from_elements(elements)),
            None => Self::Text(Json::from_compact(compact)),
        })
    }

    /// Returns the size of the compact JSON text.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        match self {
            Self::Text(json) => json.as_str().len(),
            Self::Array(array) => array.json_bytes(),
        }
    }

    /// Returns the compact JSON text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.json_bytes());
        self.write_json(&mut out);
        out
    }

    /// Appends the compact JSON text.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(json) => out.extend_from_slice(json.as_str().as_bytes()),
            Self::Array(array) => array.write_json(0, array.len(), out),
        }
    }
}

impl Heap for Value {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Text(json) => json.heap_bytes(),
            Self::Array(array) => array.heap_bytes(),
        }
    }
}

/// Keeps state out of logs.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.json_bytes())
    }
}
