//! The identity of a repeated write.

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::threads::owner::{Access, OwnerTag};

/// How long each answer is remembered at least.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// The number of answers that are remembered for longer, as long as the thread.
pub const NEWEST: u64 = 64;
/// How long answers are remembered at most, however long the thread lives.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// Most answers that are remembered. Beyond it, writes with new keys are rejected for a while.
pub const MOST: u64 = 65_536;
/// The `limit` that a 429 names when there is no room for another answer.
pub const LIMIT_NAME: &str = "idempotency_keys";
/// The limit of remembered answers: the bytes of their metadata, and 8 for each result.
pub const MOST_COST_BYTES: u64 = 16 * 1_048_576;

/// The idempotency key of a client, with a fingerprint of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, digested: keys are free text of up to 128 bytes.
    pub digest: Fingerprint,
    /// Of method, path with query, and body.
    pub request: Fingerprint,
}

/// The first 16 bytes of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// The fingerprint of a list of parts, each with its length, so that moving a border changes
    /// it.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self::of_hash(hash)
    }

    /// The fingerprint of the hashed data.
    pub(super) fn of_hash(hash: Sha256) -> Self {
        let digest = hash.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(first)
    }
}

impl IdempotencyKey {
    /// The caller's own form of the key. Callers with different access never share one.
    pub fn of(self, access: Access) -> Self {
        let Fingerprint(digest) = &self.digest;
        let digest = match access {
            Access::All => return self,
            Access::Unowned => Fingerprint::of(&[digest, b"without an owner"]),
            Access::Of(OwnerTag(owner)) => Fingerprint::of(&[digest, &owner]),
        };
        Self { digest, ..self }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}
