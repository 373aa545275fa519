//! The card that reports a replica's signing keys to the other replicas.

use serde::{Deserialize, Serialize};

use threadkeep_domain::KeyRing;

/// The keys of a replica, each in the form `digest:name`. Members added by later versions are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    /// The signing key; `None` until it is decided.
    pub(super) signs: Option<String>,
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

    /// Parses a card. Returns `None` if the format is unknown. The replica's keys then count as unknown too.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns whether the replica has the key with `digest`, under any name.
    pub(super) fn has(&self, digest: &str) -> bool {
        self.keys.iter().any(|key| digest_of(key) == digest)
    }
}

pub(super) fn digest_of(print: &str) -> &str {
    print.split(':').next().unwrap_or_default()
}

pub(super) fn name_of(print: &str) -> &str {
    print.split_once(':').map_or("", |(_, name)| name)
}
