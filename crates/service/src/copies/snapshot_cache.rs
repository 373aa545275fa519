use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::entry::{ClientView, Entry, Number};
use threadkeep_domain::{KeyedValues, ThreadId};

/// Maximum total size of all snapshots, in bytes.
const MAX_BYTES: usize = 4 * 1_048_576;

/// The snapshots that a client received, by thread. Memory use is limited: the least recently updated thread is evicted
/// first.
#[derive(Debug, Default)]
pub(super) struct SnapshotCache {
    threads: HashMap<ThreadId, Entry>,
    order: BTreeMap<Number, ThreadId>,
    bytes: usize,
    last_number: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    id: ThreadId,
    number: Number,
}

impl SnapshotCache {
    /// Returns the client's latest state, or [`ClientView::Nothing`] if that state had expired by `at`.
    pub(super) fn latest(&self, id: &ThreadId, at: Instant) -> ClientView {
        let entry = self.threads.get(id);
        entry.map_or(ClientView::Nothing, |entry| entry.last(at))
    }

    /// Finds the state on which a save sent at `at` is based, and records that the client sent it back.
    pub(super) fn basis(&mut self, id: &ThreadId, sent: &KeyedValues, at: Instant) -> ClientView {
        let Some(mut entry) = self.forget(id) else {
            return ClientView::Nothing;
        };
        let (number, view) = entry.basis(sent, at);
        entry.sent_back(number);
        self.keep(id, entry);
        view
    }

    /// Replaces all states of a thread with `view`.
    pub(super) fn note(&mut self, id: &ThreadId, view: ClientView) {
        self.last_number += 1;
        self.forget(id);
        self.keep(id, Entry::new(self.last_number, view, None));
    }

    /// Records a state sent to the client. The state expires at `until` unless [`Self::received`] confirms it.
    pub(super) fn give(&mut self, id: &ThreadId, view: ClientView, until: Instant) -> Receipt {
        let number = self.add(id, view, Some(until));
        Receipt { id: *id, number }
    }

    /// Records that a client's read failed. The client then treats the thread as empty.
    pub(super) fn fail(&mut self, id: &ThreadId) {
        self.add(id, ClientView::Nothing, None);
    }

    pub(super) fn received(&mut self, receipt: Receipt, at: Instant) {
        if let Some(mut entry) = self.forget(&receipt.id) {
            entry.received(receipt.number, at);
            self.keep(&receipt.id, entry);
        }
    }

    fn add(&mut self, id: &ThreadId, view: ClientView, until: Option<Instant>) -> Number {
        self.last_number += 1;
        let entry = Entry::new(self.last_number, view, until);
        let entry = match self.forget(id) {
            Some(earlier) => earlier.followed_by(entry),
            None => entry,
        };
        self.keep(id, entry);
        self.last_number
    }

    fn keep(&mut self, id: &ThreadId, entry: Entry) {
        self.bytes += entry.bytes();
        self.order.insert(entry.number(), *id);
        self.threads.insert(*id, entry);
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = *oldest;
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, id: &ThreadId) -> Option<Entry> {
        let entry = self.threads.remove(id)?;
        self.order.remove(&entry.number());
        self.bytes -= entry.bytes();
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use threadkeep_domain::{Snapshot, Stamp};

    fn snapshot(keys: usize) -> ClientView {
        let members: Vec<_> = (0..keys).map(|key| format!("\"{key}\":1")).collect();
        let state = format!("{{{}}}", members.join(","));
        ClientView::Snapshot(Stamp::default(), Snapshot::of(&state).into())
    }

    #[test]
    fn the_least_recently_updated_thread_is_evicted_first() {
        let ids: Vec<_> = (0..100).map(|_| ThreadId::random()).collect();
        let mut cache = SnapshotCache::default();
        for id in &ids {
            cache.note(id, snapshot(1_000));
            cache.note(&ids[0], snapshot(1_000));
        }

        let is_cached = |id| matches!(cache.latest(id, Instant::now()), ClientView::Snapshot(..));
        let cached: Vec<_> = ids.iter().map(is_cached).collect();
        let first = cached.iter().skip(1).position(|cached| *cached).unwrap() + 1;
        assert!(cached[0]);
        assert!(first > 1, "all fit");
        assert!(cached[first..].iter().all(|cached| *cached));
        assert!(cache.bytes <= MAX_BYTES);
        assert_eq!(cache.threads.len(), cache.order.len());
    }

    #[test]
    fn a_snapshot_larger_than_the_cache_is_not_stored() {
        let mut cache = SnapshotCache::default();
        let id = ThreadId::random();

        cache.note(&id, snapshot(50_000));

        assert!(matches!(
            cache.latest(&id, Instant::now()),
            ClientView::Nothing
        ));
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn a_snapshot_expires_unless_it_is_confirmed_in_time() {
        let mut cache = SnapshotCache::default();
        let id = ThreadId::random();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let is_cached =
            |cache: &SnapshotCache, at| matches!(cache.latest(&id, at), ClientView::Snapshot(..));

        let first = cache.give(&id, snapshot(1), now);
        assert!(is_cached(&cache, now) && !is_cached(&cache, later));
        cache.received(first, later);
        assert!(!is_cached(&cache, later));
        let second = cache.give(&id, snapshot(1), now);
        cache.received(first, now);
        assert!(!is_cached(&cache, later));
        cache.received(second, now);
        assert!(is_cached(&cache, later));
    }
}
