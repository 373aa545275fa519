//! Defines idempotency keys, and the limits on the answers that are stored for them.

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::threads::owner::{Access, OwnerTag};

/// Minimum time for which an answer is stored.
pub const ANSWER_TTL_MIN: Duration = Duration::from_secs(60);
/// How many of a thread's newest answers are stored for longer than [`ANSWER_TTL_MIN`]. These answers expire with the
/// thread, or after [`ANSWER_TTL_MAX`].
pub const LONG_LIVED_ANSWERS_MAX: u64 = 64;
/// Maximum time for which an answer is stored.
pub const ANSWER_TTL_MAX: Duration = Duration::from_secs(86_400);
/// Maximum number of stored answers per thread. A thread with this many answers rejects writes with new keys until an
/// answer expires.
pub const ANSWERS_MAX: u64 = 65_536;
/// Name of the limit that a 429 response reports when no further answer can be stored.
pub const LIMIT_NAME: &str = "idempotency_keys";
/// Maximum total cost of a thread's stored answers. Each answer costs the size of its metadata plus 8 bytes per result.
pub const COST_BYTES_MAX: u64 = 16 * 1_048_576;

/// A client's idempotency key and a fingerprint of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Digest of the key, which is free text of up to 128 bytes.
    pub digest: Fingerprint,
    /// Digest of the method, the path with its query, and the body.
    pub request: Fingerprint,
}

/// The first 16 bytes of a SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Hashes each part together with its length. Otherwise, moving a byte from one part to the next would not change
    /// the digest.
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
    /// Binds the key to `access`, so that callers with different access never share a key.
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
