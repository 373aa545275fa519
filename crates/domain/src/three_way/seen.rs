use crate::Fingerprint;

/// Number of newest elements per array that have their own digests.
pub(super) const NEWEST_DIGESTS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Digest of the value as the client reads it.
    pub(super) digest: Fingerprint,
    pub(super) len: Option<usize>,
    /// Digests of the newest elements of an array, newest first. Unused entries are 0.
    pub(super) newest: [u64; NEWEST_DIGESTS],
}
