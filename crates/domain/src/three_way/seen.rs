//! Facts about a value of a snapshot.

use crate::Fingerprint;

/// The newest elements of an array that are known one by one.
pub(super) const NEWEST: usize = 4;

/// A value of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Of the value as the client reads it.
    pub(super) digest: Fingerprint,
    /// Number of elements, of an array.
    pub(super) len: Option<usize>,
    /// Of an array, digests of its newest elements, the newest first; 0 past the oldest.
    pub(super) newest: [u64; NEWEST],
}
