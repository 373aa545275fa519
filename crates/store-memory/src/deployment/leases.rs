use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::MemoryStore;
use threadkeep_store::{Heard, Leases, StoreError, millis};

#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// When each holder's lease ends, in Unix milliseconds.
    holders: HashMap<String, u64>,
    leases: BTreeMap<u16, Lease>,
    /// Each holder's announcement, after its expiry in Unix milliseconds.
    said: HashMap<String, (u64, Bytes)>,
    note: Option<Bytes>,
}

#[derive(Debug)]
struct Lease {
    holder: String,
    ends_ms: u64,
}

impl Pool {
    /// Renews a holder's leases. Takes free slots, or gives slots back, until the holder has its fair share.
    fn hold(&mut self, slots: u16, holder: &str, ends_ms: u64, now_ms: u64) -> Vec<u16> {
        self.holders.insert(holder.to_owned(), ends_ms);
        self.holders.retain(|_, until_ms| *until_ms > now_ms);
        self.leases
            .retain(|slot, lease| lease.ends_ms > now_ms && *slot < slots);
        let fair = usize::from(slots).div_ceil(self.holders.len().max(1));
        let mut held: Vec<_> = (0..slots)
            .filter(|slot| self.is_held_by(*slot, holder))
            .collect();
        for surplus in held.drain(held.len().min(fair)..) {
            self.leases.remove(&surplus);
        }
        let free = (0..slots).filter(|slot| !self.leases.contains_key(slot));
        held.extend(free.take(fair - held.len()));
        for slot in &held {
            let holder = holder.to_owned();
            self.leases.insert(*slot, Lease { holder, ends_ms });
        }
        held.sort_unstable();
        held
    }

    fn is_held_by(&self, slot: u16, holder: &str) -> bool {
        let lease = self.leases.get(&slot);
        lease.is_some_and(|lease| lease.holder == holder)
    }

    /// Stores a holder's announcement, and returns the announcements of all live holders.
    fn introduce(
        &mut self,
        holder: &str,
        words: Bytes,
        ends_ms: u64,
        now_ms: u64,
    ) -> Vec<Option<Bytes>> {
        self.said.insert(holder.to_owned(), (ends_ms, words));
        self.said.retain(|_, (ends_ms, _)| *ends_ms > now_ms);
        let said = self.said.values().map(|(_, words)| Some(words.clone()));
        let living = self
            .holders
            .iter()
            .filter(|(_, ends_ms)| **ends_ms > now_ms);
        let silent = living.filter(|(holder, _)| !self.said.contains_key(*holder));
        said.chain(silent.map(|_| None)).collect()
    }

    fn release(&mut self, holder: &str) {
        self.holders.remove(holder);
        self.said.remove(holder);
        self.leases.retain(|_, lease| lease.holder != holder);
    }

    fn is_unused(&self) -> bool {
        let is_left = self.holders.is_empty() && self.leases.is_empty();
        is_left && self.said.is_empty() && self.note.is_none()
    }

    pub(crate) fn is_held(&self, slot: u16, holder: &str, now_ms: u64) -> bool {
        let lease = self.leases.get(&slot);
        lease.is_some_and(|lease| lease.holder == holder && lease.ends_ms > now_ms)
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn hold(
        &self,
        pool: &str,
        slots: u16,
        holder: &str,
        lasts: Duration,
    ) -> Result<Vec<u16>, StoreError> {
        let mut consumers = self.0.consumers();
        let now_ms = self.0.clock.now_ms();
        let ends_ms = now_ms.saturating_add(millis(lasts));
        let pool = consumers.pools.entry(pool.to_owned()).or_default();
        Ok(pool.hold(slots, holder, ends_ms, now_ms))
    }

    async fn introduce(
        &self,
        pool: &str,
        holder: &str,
        words: &[u8],
        note: Option<&[u8]>,
        lasts: Duration,
    ) -> Result<Heard, StoreError> {
        let mut consumers = self.0.consumers();
        let now_ms = self.0.clock.now_ms();
        let ends_ms = now_ms.saturating_add(millis(lasts));
        let words = Bytes::copy_from_slice(words);
        let pool = consumers.pools.entry(pool.to_owned()).or_default();
        let former = pool.note.clone();
        pool.note = note.map(Bytes::copy_from_slice).or_else(|| former.clone());
        Ok(Heard {
            said: pool.introduce(holder, words, ends_ms, now_ms),
            note: former,
        })
    }

    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError> {
        let mut consumers = self.0.consumers();
        if let Some(left) = consumers.pools.get_mut(pool) {
            left.release(holder);
            if left.is_unused() {
                consumers.pools.remove(pool);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_store::Clock;

    #[tokio::test]
    async fn a_pool_that_all_have_left_takes_no_memory() {
        let store = MemoryStore::new(Clock::system());
        for holder in ["a", "b"] {
            let lasts = Duration::from_secs(10);
            store.hold("pool", 1, holder, lasts).await.unwrap();
        }

        store.release("pool", "a").await.unwrap();
        assert_eq!(store.0.consumers().pools.len(), 1);
        store.release("pool", "b").await.unwrap();

        assert!(store.0.consumers().pools.is_empty());
    }
}
