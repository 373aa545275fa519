//! What a client knows of threads, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::domain::{Given, Life, Stamp, ThreadId};

/// Bytes that all of it may take up.
const MAX_BYTES: usize = 4 * 1_048_576;
/// Bytes that a thread takes up beside what was given of it.
const BYTES_OF_A_THREAD: usize = 256;

/// What a client knows of a thread.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// Nothing, or it was forgotten.
    Nothing,
    /// There was none when it looked.
    Absent,
    /// What it was given, and at which version.
    Given(Stamp, Arc<Given>),
    /// It was given that life and has destroyed the thread itself.
    Destroyed(Life),
}

/// What a client knows of each thread. What was not noted for longest is forgotten first.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    threads: HashMap<ThreadId, (u64, Known)>,
    order: BTreeMap<u64, ThreadId>,
    bytes: usize,
    noted: u64,
}

impl Ledger {
    pub(super) fn known(&self, id: &ThreadId) -> Known {
        let known = self.threads.get(id).map(|(_, known)| known.clone());
        known.unwrap_or(Known::Nothing)
    }

    pub(super) fn note(&mut self, id: &ThreadId, known: Known) {
        self.forget(id);
        self.noted += 1;
        self.bytes += bytes(&known);
        self.order.insert(self.noted, *id);
        self.threads.insert(*id, (self.noted, known));
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
    }

    pub(super) fn forget(&mut self, id: &ThreadId) {
        if let Some((place, known)) = self.threads.remove(id) {
            self.order.remove(&place);
            self.bytes -= bytes(&known);
        }
    }
}

fn bytes(known: &Known) -> usize {
    BYTES_OF_A_THREAD
        + match known {
            Known::Given(_, given) => given.bytes(),
            Known::Nothing | Known::Absent | Known::Destroyed(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(keys: usize) -> Known {
        let members: Vec<_> = (0..keys).map(|key| format!("\"{key}\":1")).collect();
        let state = format!("{{{}}}", members.join(","));
        Known::Given(Stamp::default(), Given::of(&state).into())
    }

    #[test]
    fn what_was_not_noted_for_longest_is_forgotten_first() {
        let ids: Vec<_> = (0..100).map(|_| ThreadId::random()).collect();
        let mut ledger = Ledger::default();
        for id in &ids {
            ledger.note(id, given(1_000));
            ledger.note(&ids[0], given(1_000));
        }

        let is_known = |id| matches!(ledger.known(id), Known::Given(..));
        let known: Vec<_> = ids.iter().map(is_known).collect();
        let first = known.iter().skip(1).position(|known| *known).unwrap() + 1;
        assert!(known[0]);
        assert!(first > 1, "all fit");
        assert!(known[first..].iter().all(|known| *known));
        assert!(ledger.bytes <= MAX_BYTES);
        assert_eq!(ledger.threads.len(), ledger.order.len());
    }

    #[test]
    fn what_is_larger_than_all_is_not_kept() {
        let mut ledger = Ledger::default();
        let id = ThreadId::random();

        ledger.note(&id, given(50_000));

        assert!(matches!(ledger.known(&id), Known::Nothing));
        assert_eq!(ledger.bytes, 0);
    }
}
