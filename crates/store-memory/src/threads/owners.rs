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
    HistoryPreview, OwnedPosition, OwnerUsage, Owners, ReservationToken, StoreError, ThreadOrder,
    ThreadPage,
};

/// Maximum number of ids that are checked under one lock for each requested thread. The number is greater than one,
/// because most ids in a shard may belong to ended threads.
const IDS_PER_THREAD: usize = 8;

#[async_trait]
impl Owners for MemoryStore {
    async fn list_owned(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPosition>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPosition>, StoreError> {
        let runs = self.0.each().map(|shard| {
            let positions = shard.owned_before(owner, order, after.copied());
            let items: Vec<_> = positions.take(limit + 1).map(Reverse).collect();
            let is_end = items.len() <= limit;
            let read_to = items.last().copied().filter(|_| !is_end);
            SortedPart { items, read_to }
        });
        let (positions, next) = merge(runs.collect(), limit);
        let positions = positions.into_iter().map(|Reverse(position)| position);
        Ok(ThreadPage {
            threads: self.described(positions, |(_, id)| id),
            next: next.map(|Reverse(position)| position),
        })
    }

    async fn list_threads(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<ThreadPage<ThreadId>, StoreError> {
        let after = after.unwrap_or(&ThreadId::MIN);
        let runs = self.0.each().map(|shard| {
            let ids_max = IDS_PER_THREAD * limit;
            let mut run = SortedPart {
                items: Vec::new(),
                read_to: None,
            };
            for (count, (id, entry)) in shard.after(after).enumerate() {
                if count == ids_max || run.items.len() == limit {
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
        let thread = self.described(iter::once(id), |id| id).pop();
        Ok(thread.map(|(_, thread)| thread))
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

    async fn preview_histories(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryPreview>>, StoreError> {
        let preview = |id| {
            let now_ms = self.0.clock.now_ms();
            let shard = self.0.of(id);
            let scope = shard.living(id, now_ms)?.scope.as_deref();
            Some(scope.map_or_else(HistoryPreview::default, |scope| scope.preview(opening)))
        };
        Ok(ids.iter().map(preview).collect())
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
            let positions = shard.owned_before(owner, ThreadOrder::Created, None);
            positions.count() as u64
        };
        Ok(self.0.each().map(listed).sum())
    }

    async fn reserve_thread(
        &self,
        owner: OwnerTag,
        reservation: ReservationToken,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        let now_ms = self.0.clock.now_ms();
        Ok(self
            .0
            .reservations()
            .reserve(owner, reservation, ttl, now_ms))
    }

    async fn release_reservation(
        &self,
        owner: OwnerTag,
        reservation: ReservationToken,
    ) -> Result<(), StoreError> {
        self.0.reservations().release(owner, reservation);
        Ok(())
    }
}

impl MemoryStore {
    fn described<P>(
        &self,
        positions: impl Iterator<Item = P>,
        id: impl Fn(&P) -> &ThreadId,
    ) -> Vec<(P, Thread)> {
        let describe = |position: P| {
            let now_ms = self.0.clock.now_ms();
            let id = id(&position);
            let thread = self.0.of(id).living(id, now_ms)?.describe();
            Some((position, thread))
        };
        positions.filter_map(describe).collect()
    }
}
