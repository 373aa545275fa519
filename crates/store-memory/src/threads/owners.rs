use std::cmp::Reverse;
use std::iter;
use std::time::Duration;

use async_trait::async_trait;

use crate::MemoryStore;
use crate::budget::Held;
use crate::shard::Shard;
use threadkeep_domain::{OwnerTag, Thread, ThreadId};
use threadkeep_store::merged::{SortedPart, merge};
use threadkeep_store::{
    HistoryGlance, OwnedPlace, OwnerUsage, Owners, PlaceToken, StoreError, ThreadOrder, ThreadPage,
};

/// Number of ids checked under one lock for each requested thread. More than one, because most ids in a shard may
/// belong to ended threads.
const LOOKED_AT: usize = 8;

#[async_trait]
impl Owners for MemoryStore {
    async fn list_owned(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPlace>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPlace>, StoreError> {
        let runs = self.0.each().map(|shard| {
            let places = shard.owned_before(owner, order, after.copied());
            let items: Vec<_> = places.take(limit + 1).map(Reverse).collect();
            let is_all = items.len() <= limit;
            let read_to = items.last().copied().filter(|_| !is_all);
            SortedPart { items, read_to }
        });
        let (places, next) = merge(runs.collect(), limit);
        let places = places.into_iter().map(|Reverse(place)| place);
        Ok(ThreadPage {
            threads: self.described(places, |(_, id)| id),
            next: next.map(|Reverse(place)| place),
        })
    }

    async fn list_threads(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<ThreadPage<ThreadId>, StoreError> {
        let after = after.unwrap_or(&ThreadId::MIN);
        let runs = self.0.each().map(|shard| {
            let most = LOOKED_AT * limit;
            let mut run = SortedPart {
                items: Vec::new(),
                read_to: None,
            };
            for (count, (id, entry)) in shard.after(after).enumerate() {
                if count == most || run.items.len() == limit {
                    break;
                }
                if entry.has_thread() {
                    run.items.push(*id);
                }
                run.read_to = Some(*id);
            }
            let is_end = run
                .read_to
                .is_none_or(|last| shard.after(&last).next().is_none());
            run.read_to.take_if(|_| is_end);
            run
        });
        let (ids, next) = merge(runs.collect(), limit);
        Ok(ThreadPage {
            threads: self.described(ids.into_iter(), |id| id),
            next,
        })
    }

    async fn peek_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        let found = self.described(iter::once(id), |id| id).pop();
        Ok(found.map(|(_, thread)| thread))
    }

    async fn count_threads(&self) -> Result<u64, StoreError> {
        Ok(self.0.each().map(|shard| shard.threads()).sum())
    }

    async fn owner_of(&self, id: &ThreadId) -> Result<Option<OwnerTag>, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let shard = self.0.of(id);
        let living = shard.living(id, now_ms);
        let last = || Some(&shard.past.archive(id, None, now_ms)?.living);
        Ok(living.or_else(last).and_then(|life| life.owner_tag()))
    }

    async fn glance_histories(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryGlance>>, StoreError> {
        let glance = |id| {
            let now_ms = self.0.clock.now_ms();
            let shard = self.0.of(id);
            let scope = shard.living(id, now_ms)?.scope.as_deref();
            Some(scope.map_or_else(HistoryGlance::default, |scope| scope.glance(opening)))
        };
        Ok(ids.iter().map(glance).collect())
    }

    async fn measure_owned(&self, owner: OwnerTag) -> Result<OwnerUsage, StoreError> {
        let mut owned = OwnerUsage::default();
        let now_ms = self.0.clock.now_ms();
        for shard in self.0.each() {
            for (_, id) in shard.owned_before(owner, ThreadOrder::Created, None) {
                if let Some(living) = shard.living(&id, now_ms) {
                    owned.threads += 1;
                    owned.size_bytes += living.document.size_bytes();
                }
            }
        }
        Ok(owned)
    }

    async fn count_owned(&self, owner: OwnerTag) -> Result<u64, StoreError> {
        let listed = |shard: Held<'_, Shard>| {
            let places = shard.owned_before(owner, ThreadOrder::Created, None);
            places.count() as u64
        };
        Ok(self.0.each().map(listed).sum())
    }

    async fn reserve_place(
        &self,
        owner: OwnerTag,
        place: PlaceToken,
        lasts: Duration,
    ) -> Result<u64, StoreError> {
        let now_ms = self.0.clock.now_ms();
        Ok(self.0.reservations().reserve(owner, place, lasts, now_ms))
    }

    async fn release_place(&self, owner: OwnerTag, place: PlaceToken) -> Result<(), StoreError> {
        self.0.reservations().release(owner, place);
        Ok(())
    }
}

impl MemoryStore {
    fn described<P>(
        &self,
        places: impl Iterator<Item = P>,
        id: impl Fn(&P) -> &ThreadId,
    ) -> Vec<(P, Thread)> {
        let describe = |place: P| {
            let now_ms = self.0.clock.now_ms();
            let id = id(&place);
            let thread = self.0.of(id).living(id, now_ms)?.describe();
            Some((place, thread))
        };
        places.filter_map(describe).collect()
    }
}
