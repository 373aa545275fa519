use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::MemoryStore;
use threadkeep_store::{Announcements, Leases, StoreError, millis};

#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// When each holder's lease ends, in Unix milliseconds.
    holders: HashMap<String, u64>,
    leases: BTreeMap<u16, Lease>,
    /// Each holder's announcement, after its expiry in Unix milliseconds.
    announcements: HashMap<String, (u64, Bytes)>,
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
    fn announce(
        &mut self,
        holder: &str,
        content: Bytes,
        ends_ms: u64,
        now_ms: u64,
    ) -> Vec<Option<Bytes>> {
        self.announcements
            .insert(holder.to_owned(), (ends_ms, content));
        self.announcements
            .retain(|_, (ends_ms, _)| *ends_ms > now_ms);
        let announcements = self
            .announcements
            .values()
            .map(|(_, content)| Some(content.clone()));
        let living = self
            .holders
            .iter()
            .filter(|(_, ends_ms)| **ends_ms > now_ms);
        let silent = living.filter(|(holder, _)| !self.announcements.contains_key(*holder));
        announcements.chain(silent.map(|_| None)).collect()
    }

    fn release(&mut self, holder: &str) {
        self.holders.remove(holder);
        self.announcements.remove(holder);
        self.leases.retain(|_, lease| lease.holder != holder);
    }

    fn is_unused(&self) -> bool {
        let has_no_leases = self.holders.is_empty() && self.leases.is_empty();
        has_no_leases && self.announcements.is_empty() && self.note.is_none()
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
        ttl: Duration,
    ) -> Result<Vec<u16>, StoreError> {
        let mut consumers = self.0.consumers();
        let now_ms = self.0.clock.now_ms();
        let ends_ms = now_ms.saturating_add(millis(ttl));
        let pool = consumers.pools.entry(pool.to_owned()).or_default();
        Ok(pool.hold(slots, holder, ends_ms, now_ms))
    }

    async fn announce(
        &self,
        pool: &str,
        holder: &str,
        content: &[u8],
        note: Option<&[u8]>,
        ttl: Duration,
    ) -> Result<Announcements, StoreError> {
        let mut consumers = self.0.consumers();
        let now_ms = self.0.clock.now_ms();
        let ends_ms = now_ms.saturating_add(millis(ttl));
        let content = Bytes::copy_from_slice(content);
        let pool = consumers.pools.entry(pool.to_owned()).or_default();
        let previous = pool.note.clone();
        pool.note = note
            .map(Bytes::copy_from_slice)
            .or_else(|| previous.clone());
        Ok(Announcements {
            announcements: pool.announce(holder, content, ends_ms, now_ms),
            note: previous,
        })
    }

    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError> {
        let mut consumers = self.0.consumers();
        if let Some(held) = consumers.pools.get_mut(pool) {
            held.release(holder);
            if held.is_unused() {
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
    async fn a_pool_without_holders_uses_no_memory() {
        let store = MemoryStore::new(Clock::system());
        for holder in ["a", "b"] {
            let ttl = Duration::from_secs(10);
            store.hold("pool", 1, holder, ttl).await.unwrap();
        }

        store.release("pool", "a").await.unwrap();
        assert_eq!(store.0.consumers().pools.len(), 1);
        store.release("pool", "b").await.unwrap();

        assert!(store.0.consumers().pools.is_empty());
    }
}
