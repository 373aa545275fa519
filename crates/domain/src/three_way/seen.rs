use crate::Fingerprint;

/// Number of newest elements that are digested one by one.
pub(super) const NEWEST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Digest of the value as the client reads it.
    pub(super) digest: Fingerprint,
    pub(super) len: Option<usize>,
    /// Digests of the newest elements of an array, newest first; 0 past the oldest.
    pub(super) newest: [u64; NEWEST],
}
