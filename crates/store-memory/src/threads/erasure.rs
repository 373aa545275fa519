use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::yield_now;

use crate::shard::ErasedContent;
use crate::{BATCH, MemoryStore};
use threadkeep_domain::{Event, Life, OwnerTag, Position, ThreadId};
use threadkeep_store::{Erased, ErasedLife, Erasure, StoreError};

/// Maximum number of a shard's erased lives that one step handles.
const LIVES_MAX: usize = 1_000;
/// Maximum number of events checked under one lock. Checking that many takes about a tenth of a millisecond.
const EVENTS_MAX: usize = 1_024;

#[async_trait]
impl Erasure for MemoryStore {
    async fn erase_owned(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Result<Option<Erased>, StoreError> {
        let mut total: Option<Erased> = None;
        for index in 0..self.0.shards.len() {
            if let Some(erased) = self.erase_in(index, owner, tombstone) {
                let total = total.get_or_insert_default();
                total.threads += erased.threads;
                total.archives += erased.archives;
            }
            yield_now().await;
        }
        Ok(total)
    }

    async fn erased_lives(&self, owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError> {
        let mut lives = Vec::new();
        for shard in self.0.each() {
            let erased = &shard.past.erased;
            let from = erased.range((owner, ThreadId::MIN, Life(0))..);
            let owned = from.take_while(|((other, ..), _)| *other == owner);
            lives.extend(
                owned
                    .take(LIVES_MAX)
                    .map(|((_, id, life), created_ms)| ErasedLife {
                        id: *id,
                        life: Some(*life),
                        created_ms: *created_ms,
                    }),
            );
        }
        Ok(lives)
    }

    async fn purge_log(&self, _: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError> {
        let mut by_shard: HashMap<usize, Vec<&ErasedLife>> = HashMap::new();
        for life in lives {
            let index = self.0.index_of(&life.id);
            by_shard.entry(index).or_default().push(life);
        }
        for (index, lives) in by_shard {
            let from_ms = lives.iter().map(|life| life.logged_from_ms()).min();
            let mut after = Some(Position {
                ms: from_ms.unwrap_or_default().saturating_sub(1),
                seq: u64::MAX,
            });
            let lives = lives.into_iter().map(|life| (life.id, life.life)).collect();
            while let Some(from) = after {
                after = self.purge_in(index, from, &lives);
                yield_now().await;
            }
        }
        Ok(())
    }

    async fn forget_lives(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError> {
        for ErasedLife { id, life, .. } in lives {
            let life = (owner, *id, life.unwrap_or_default());
            self.0.of(id).past.erased.remove(&life);
        }
        Ok(())
    }
}

impl MemoryStore {
    fn erase_in(&self, index: usize, owner: OwnerTag, tombstone: Duration) -> Option<Erased> {
        let mut removed = ErasedContent::default();
        let mut shard = self.0.hold(index);
        let now_ms = self.0.clock.now_ms();
        let erased = shard.erase_owned(owner, tombstone, BATCH, now_ms, &mut removed);
        drop(shard);
        erased
    }

    /// Returns the position to continue from.
    fn purge_in(
        &self,
        index: usize,
        from: Position,
        lives: &HashSet<(ThreadId, Option<Life>)>,
    ) -> Option<Position> {
        let is_erased = |event: &Event| {
            let life = |id: &ThreadId| (*id, Some(event.life));
            event.is_state_change() && event.thread().is_some_and(|id| lives.contains(&life(id)))
        };
        let mut shard = self.0.hold(index);
        shard.past.log.purge(from, EVENTS_MAX, is_erased)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::scope::{
        HistoryItem, KeyRule, KvOperation, ScopeId, ScopeKey, ScopePolicies, ScopeValue, ScopeWrite,
    };
    use threadkeep_domain::{
        Conditions, Fingerprint, IdempotencyKey, Json, Key, MetadataChange, Operation, Owner,
        OwnerChange, ThreadPolicy, Value, Write,
    };
    use threadkeep_store::{
        Checkpoints as _, Clock, Destroy, EventLog as _, Rotate, Scopes as _, Store as _,
    };

    /// Renders the threads, scopes, archives and events of a store. Content appears only as its size, so tests use
    /// unusual sizes that they can search for.
    fn dump(store: &MemoryStore) -> String {
        let shards = store.0.each().map(|shard| format!("{:?}", *shard));
        shards.collect()
    }

    fn json(bytes: usize) -> String {
        format!("\"{}\"", "x".repeat(bytes - 2))
    }

    fn metadata(bytes: usize) -> MetadataChange {
        let text = format!(r#"{{"m":{}}}"#, json(bytes - 6));
        MetadataChange {
            new: Json::parse(&text).unwrap(),
            old: None,
        }
    }

    fn sizes(size: usize) -> [String; 6] {
        [
            format!("Key({size} bytes)"),
            // as an event names the key
            format!("Json({} bytes)", size + 4),
            format!("Value({} bytes)", 1_000 + size),
            format!("Json({} bytes)", 2_000 + size),
            format!("ScopeKey({size} bytes)"),
            format!("Json({} bytes)", 3_000 + size),
        ]
    }

    fn once(digest: u8) -> Conditions {
        Conditions {
            idempotency: Some(IdempotencyKey {
                digest: Fingerprint([digest; 16]),
                request: Fingerprint([2; 16]),
            }),
            ..Conditions::default()
        }
    }

    async fn rotate(store: &MemoryStore, id: &ThreadId, digest: u8) -> ThreadId {
        let rotate = Rotate {
            conditions: once(digest),
            tombstone: Duration::from_secs(60),
        };
        store.rotate(id, &rotate).await.unwrap().id
    }

    async fn fill(store: &MemoryStore, id: &ThreadId, owner: &Owner, size: usize) {
        let metadata = metadata(2_000 + size);
        let operations = [Operation::Set {
            key: Key::new("k".repeat(size)).unwrap(),
            value: Value::parse(&json(1_000 + size)).unwrap(),
        }];
        let write = Write {
            operations: &operations,
            metadata: Some(&metadata),
            owner: OwnerChange::Set(owner),
            describe: true,
            conditions: Conditions {
                idempotency: Some(IdempotencyKey {
                    digest: Fingerprint([1; 16]),
                    request: Fingerprint([2; 16]),
                }),
                ..Conditions::default()
            },
            ..Write::new(&ThreadPolicy::THREAD)
        };
        store.write(id, &write).await.unwrap();
        let scope = ScopeId::Thread(*id);
        let policy = ScopePolicies::DEFAULT.of(&scope);
        let operations = [KvOperation::Set {
            key: ScopeKey::new("s".repeat(size), KeyRule::Namespaced).unwrap(),
            value: ScopeValue::new("1").unwrap(),
            ttl: None,
            if_absent: false,
        }];
        let history = [HistoryItem {
            id: "item".parse().unwrap(),
            value: Json::parse(&json(3_000 + size)).unwrap(),
        }];
        let write = ScopeWrite {
            operations: &operations,
            history: &history,
            ..ScopeWrite::new(&policy)
        };
        store.write_scope(&scope, &write).await.unwrap();
    }

    #[tokio::test]
    async fn an_erasure_leaves_no_owner_data_in_memory() {
        let store = MemoryStore::new(Clock::system());
        let [owner, other] = ["ann", "bob"].map(|text| Owner::new(text).unwrap());
        let [living, archived, transferred] = [(); 3].map(|()| ThreadId::random());
        store.watch_all(Duration::from_secs(60)).await.unwrap();
        // waits, because changes in the millisecond in which the watch starts are not logged
        tokio::time::sleep(Duration::from_millis(2)).await;
        let ids = [(&living, 71), (&archived, 73), (&transferred, 79)];
        for (id, size) in ids {
            fill(&store, id, &owner, size).await;
        }
        let name = "name of a checkpoint";
        let checkpoint = name.parse().unwrap();
        store
            .save_checkpoint(&living, Some(&checkpoint), &once(3))
            .await
            .unwrap();
        let living = rotate(&store, &living, 4).await;
        let transferred = rotate(&store, &transferred, 4).await;
        let destroy = Destroy {
            tombstone: Duration::ZERO,
            conditions: Conditions::default(),
        };
        store.destroy(&archived, &destroy).await.unwrap();
        let metadata = metadata(100);
        let write = Write {
            metadata: Some(&metadata),
            owner: OwnerChange::Set(&other),
            ..Write::new(&ThreadPolicy::THREAD)
        };
        store.write(&transferred, &write).await.unwrap();
        rotate(&store, &living, 5).await;
        rotate(&store, &transferred, 5).await;
        let before = dump(&store);
        assert!(before.contains(name));
        for size in ids.iter().flat_map(|(_, size)| sizes(*size)) {
            assert!(before.contains(&size), "{size} in {before}");
        }
        assert!(owner.is_shared());

        let tombstone = Duration::from_secs(60);
        let erase = || store.erase_owned(owner.tag(), tombstone);
        while erase().await.unwrap().is_some() {}
        let lives = store.erased_lives(owner.tag()).await.unwrap();
        store.purge_log(owner.tag(), &lives).await.unwrap();
        store.forget_lives(owner.tag(), &lives).await.unwrap();

        let after = dump(&store);
        assert!(!after.contains(name), "{after}");
        for size in [71, 73].into_iter().flat_map(sizes) {
            assert!(!after.contains(&size), "{size} in {after}");
        }
        // the transferred thread keeps its keys; only the former owner's remembered result contained the old metadata
        let [key, .., remembered, _, _] = sizes(79);
        assert!(after.contains(&key), "{after}");
        assert!(!after.contains(&remembered), "{after}");
        assert!(!owner.is_shared());
    }
}
