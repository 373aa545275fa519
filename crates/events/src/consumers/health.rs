use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// When the consumer's current outage began, in Unix milliseconds; `None` after a successful delivery. All slots of
/// this replica share this time, and the ledger stores it.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<u64>>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing_since_ms: Option<u64>,
}

impl Health {
    /// Reads the time from the ledger's note, unless this replica has recorded a time. Ignores unreadable notes.
    pub(super) fn read(&self, note: Option<&Bytes>) {
        let note = note.and_then(|note| serde_json::from_slice(note).ok());
        let Note { failing_since_ms } = note.unwrap_or_default();
        self.change(|since| since.is_none().then_some(failing_since_ms));
    }

    pub(super) fn failing_since_ms(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn succeed(&self) -> Option<Bytes> {
        self.change(|since| since.is_some().then_some(None))
    }

    /// Records a failure. Returns a note for the ledger if the failure begins an outage.
    pub(super) fn fail(&self, now_ms: u64) -> Option<Bytes> {
        self.change(|since| since.is_none().then_some(Some(now_ms)))
    }

    fn change(&self, to: impl Fn(Option<u64>) -> Option<Option<u64>>) -> Option<Bytes> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failing_since_ms = to(*since)?;
        *since = failing_since_ms;
        let note = serde_json::to_vec(&Note { failing_since_ms });
        Some(note.expect("a number always serializes").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_since_the_last_success() {
        let health = Health::default();

        let note = health.fail(1).unwrap();
        assert_eq!(health.fail(2), None);
        assert_eq!(health.failing_since_ms(), Some(1));

        let other = Health::default();
        other.read(Some(&note));
        assert_eq!(other.failing_since_ms(), Some(1));

        let note = health.succeed().unwrap();
        assert_eq!(health.succeed(), None);
        let other = Health::default();
        other.read(Some(&note));
        other.read(Some(&Bytes::from_static(b"what?")));
        assert_eq!(other.failing_since_ms(), None);
    }
}
