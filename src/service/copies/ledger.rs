//! What a client knows of threads, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

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
    threads: HashMap<ThreadId, Entry>,
    order: BTreeMap<u64, ThreadId>,
    bytes: usize,
    noted: u64,
}

#[derive(Debug)]
struct Entry {
    known: Known,
    noted: u64,
    /// From when on it does not count, unless the client is known to have it.
    until: Option<Instant>,
}

/// Something that was given, by which it is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    id: ThreadId,
    noted: u64,
}

impl Ledger {
    /// What a client knows that asks for something at that moment.
    pub(super) fn known(&self, id: &ThreadId, at: Instant) -> Known {
        let entry = self.threads.get(id);
        let entry = entry.filter(|entry| entry.until.is_none_or(|until| at <= until));
        entry.map_or(Known::Nothing, |entry| entry.known.clone())
    }

    /// Notes what a client knows.
    pub(super) fn note(&mut self, id: &ThreadId, known: Known) {
        self.put(id, known, None);
    }

    /// Notes what a client is given. It does not count after that moment, unless it is
    /// [received](Self::received).
    pub(super) fn give(&mut self, id: &ThreadId, known: Known, until: Instant) -> Receipt {
        self.put(id, known, Some(until));
        Receipt {
            id: *id,
            noted: self.noted,
        }
    }

    /// Notes that a client has what it was given, if that is the last thing that it was given of the
    /// thread.
    pub(super) fn received(&mut self, receipt: Receipt, at: Instant) {
        let entry = self.threads.get_mut(&receipt.id);
        let entry = entry.filter(|entry| entry.noted == receipt.noted);
        if let Some(entry) = entry
            && entry.until.is_some_and(|until| at <= until)
        {
            entry.until = None;
        }
    }

    fn put(&mut self, id: &ThreadId, known: Known, until: Option<Instant>) {
        self.forget(id);
        self.noted += 1;
        self.bytes += bytes(&known);
        self.order.insert(self.noted, *id);
        let noted = self.noted;
        self.threads.insert(
            *id,
            Entry {
                known,
                noted,
                until,
            },
        );
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
    }

    pub(super) fn forget(&mut self, id: &ThreadId) {
        if let Some(entry) = self.threads.remove(id) {
            self.order.remove(&entry.noted);
            self.bytes -= bytes(&entry.known);
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
    use std::time::Duration;

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

        let is_known = |id| matches!(ledger.known(id, Instant::now()), Known::Given(..));
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

        assert!(matches!(ledger.known(&id, Instant::now()), Known::Nothing));
        assert_eq!(ledger.bytes, 0);
    }

    #[test]
    fn what_is_not_received_in_time_does_not_count_any_more() {
        let mut ledger = Ledger::default();
        let id = ThreadId::random();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let is_known = |ledger: &Ledger, at| matches!(ledger.known(&id, at), Known::Given(..));

        let first = ledger.give(&id, given(1), now);
        assert!(is_known(&ledger, now) && !is_known(&ledger, later));
        ledger.received(first, later);
        assert!(!is_known(&ledger, later));
        let second = ledger.give(&id, given(1), now);
        ledger.received(first, now);
        assert!(!is_known(&ledger, later));
        ledger.received(second, now);
        assert!(is_known(&ledger, later));
    }
}
