use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::Heap;

const PREFIX: &str = "thrd_";
const MIN_BYTES: usize = 32;
const MAX_BYTES: usize = 64;

/// A thread id: `thrd_` followed by characters of `[a-zA-Z0-9]`, 32 to 64 bytes in total. The bytes are stored inline,
/// so that copies do not allocate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    bytes: [u8; MAX_BYTES],
    len: u8,
}

/// A malformed thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a thread id is `thrd_` and then letters and digits, 32 to 64 characters in all")]
pub struct ThreadIdError;

/// Excludes the padding.
impl Hash for ThreadId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Heap for ThreadId {
    fn heap_bytes(&self) -> u64 {
        0
    }
}

impl ThreadId {
    /// Sorts before every other id, and names no thread.
    #[doc(hidden)]
    pub const MIN: Self = Self {
        bytes: [0; MAX_BYTES],
        len: 0,
    };

    /// Generates a random id. The operating system seeds the generator.
    #[must_use]
    pub fn random() -> Self {
        Self::from_entropy(rand::random())
    }

    /// Generates random ids until `is_wanted` accepts one. To keep the search short, `is_wanted` should accept at least
    /// one in a few hundred ids.
    #[doc(hidden)]
    pub fn random_where(is_wanted: impl Fn(&Self) -> bool) -> Self {
        loop {
            let id = Self::random();
            if is_wanted(&id) {
                return id;
            }
        }
    }

    /// Encodes 16 bytes in the format of a random id.
    #[must_use]
    pub fn from_entropy(entropy: [u8; 16]) -> Self {
        let mut bytes = [0; MAX_BYTES];
        bytes[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        let len = PREFIX.len() + 2 * entropy.len();
        hex::encode_to_slice(entropy, &mut bytes[PREFIX.len()..len])
            .expect("the slice has two bytes for each byte of entropy");
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("an id is ASCII by construction")
    }

    /// Returns the bytes to sign.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl FromStr for ThreadId {
    type Err = ThreadIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let tail = text.strip_prefix(PREFIX).ok_or(ThreadIdError)?;
        let legal = (MIN_BYTES..=MAX_BYTES).contains(&text.len())
            && tail.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !legal {
            return Err(ThreadIdError);
        }
        let mut bytes = [0; MAX_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self {
            bytes,
            len: text.len() as u8,
        })
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Keeps whole ids out of logs. Formats the first eight hex digits of a hash instead.
impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", short_hash(self.as_bytes()))
    }
}

/// Returns the first eight hex digits of the hash of a name, for logs.
pub fn short_hash(name: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(&Sha256::digest(name)[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_are_valid_and_differ() {
        let id = ThreadId::random();

        assert_eq!(id.as_str().len(), 37);
        assert_eq!(id.as_str().parse(), Ok(id));
        assert_ne!(id, ThreadId::random());
    }

    #[test]
    fn length_and_alphabet_are_checked_at_their_edges() {
        let id = |n: usize| format!("thrd_{}", "a".repeat(n - 5));

        assert!(id(31).parse::<ThreadId>().is_err());
        assert!(id(32).parse::<ThreadId>().is_ok());
        assert!(id(64).parse::<ThreadId>().is_ok());
        assert!(id(65).parse::<ThreadId>().is_err());
        for bad in ["thrd-", "THRD_", "sess_", "thrd_-", "thrd_é"] {
            let text = format!("{bad}{}", "a".repeat(32));
            assert!(text.parse::<ThreadId>().is_err(), "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_id() {
        let id = ThreadId::random();

        assert!(!format!("{id:?}").contains(&id.as_str()[5..13]));
    }
}
