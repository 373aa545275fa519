//! Idempotency keys.

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::threads::owner::{Access, OwnerTag};

/// Minimum time that an answer is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// Number of newest answers that are remembered longer, as long as the thread lives.
pub const NEWEST: u64 = 64;
/// Maximum time that an answer is remembered.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// Maximum number of remembered answers. Beyond it, writes with new keys are rejected for a while.
pub const MOST: u64 = 65_536;
/// The `limit` in a 429 when no further answer fits.
pub const LIMIT_NAME: &str = "idempotency_keys";
/// Maximum cost of remembered answers: the bytes of their metadata, and 8 for each result.
pub const MOST_COST_BYTES: u64 = 16 * 1_048_576;

/// A client's idempotency key and a fingerprint of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Digest of the key, which is free text of up to 128 bytes.
    pub digest: Fingerprint,
    /// Digest of method, path with query, and body.
    pub request: Fingerprint,
}

/// The first 16 bytes of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Digests parts with their lengths, so that shifted boundaries change the result.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self::of_hash(hash)
    }

    pub(super) fn of_hash(hash: Sha256) -> Self {
        let digest = hash.finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(first)
    }
}

impl IdempotencyKey {
    /// Binds the key to the caller. Callers with different access never share a key.
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
