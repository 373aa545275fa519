//! The card on which a replica describes its signing keys to the others.

use serde::{Deserialize, Serialize};

use threadkeep_domain::KeyRing;

/// Prints of keys, each as `digest:name`. Members that a later version adds are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    /// The one that signs, once that is decided.
    pub(super) signs: Option<String>,
    /// All that verify.
    pub(super) keys: Vec<String>,
}

impl Card {
    pub(super) fn of(ring: &KeyRing) -> Self {
        let signing = &ring.keys()[ring.signing()];
        Self {
            signs: Some(signing.print().to_string()),
            ..Self::undecided(ring)
        }
    }

    /// That of a replica that does not sign yet.
    pub(super) fn undecided(ring: &KeyRing) -> Self {
        let keys = ring.keys().iter();
        Self {
            signs: None,
            keys: keys.map(|key| key.print().to_string()).collect(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a card; `None` if another version wrote it, so that the keys of its replica are
    /// unknown.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether the replica has a key, whatever it calls it.
    pub(super) fn has(&self, digest: &str) -> bool {
        self.keys.iter().any(|key| digest_of(key) == digest)
    }
}

/// The digest of a print.
pub(super) fn digest_of(print: &str) -> &str {
    print.split(':').next().unwrap_or_default()
}

/// The name of a print.
pub(super) fn name_of(print: &str) -> &str {
    print.split_once(':').map_or("", |(_, name)| name)
}
