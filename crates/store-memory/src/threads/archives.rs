use async_trait::async_trait;

use crate::MemoryStore;
use threadkeep_domain::{Life, Thread, ThreadId, ThreadPolicy};
use threadkeep_store::{
    Archive, ArchiveHead, ArchivePage, ArchivePlace, Archives, StoreError, WriteError,
};

impl MemoryStore {
    fn archive_places(&self, after: &ArchivePlace, limit: usize) -> Vec<ArchivePlace> {
        let now_ms = self.0.clock.now_ms();
        let mut places = Vec::new();
        for shard in self.0.each() {
            let past = &shard.past;
            let can_be_got = |place: &&ArchivePlace| {
                let archive = place.archive.as_ref();
                archive.is_some_and(|(id, life)| past.archive(id, Some(*life), now_ms).is_some())
            };
            let oldest = ArchivePlace {
                archived_ms: past.archive_cutoff_ms(now_ms) + 1,
                archive: None,
            };
            let following = past.ended_threads.after(after.max(&oldest));
            places.extend(following.filter(can_be_got).take(limit));
        }
        places.sort_unstable();
        places.truncate(limit);
        places
    }

    fn archive_head(&self, place: &ArchivePlace) -> Option<ArchiveHead> {
        let (id, life) = &place.archive?;
        let shard = self.0.of(id);
        let last = shard.past.archive(id, Some(*life), self.0.clock.now_ms())?;
        Some(last.head(id))
    }
}

#[async_trait]
impl Archives for MemoryStore {
    async fn get_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<Archive>, StoreError> {
        let shard = self.0.of(id);
        let last = shard.past.archive(id, life, self.0.clock.now_ms());
        Ok(last.map(|last| last.archive(id)))
    }

    async fn get_final(&self, id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError> {
        let shard = self.0.of(id);
        let last = shard.past.ended_threads.get(id, Some(life));
        Ok(last.map(|last| last.archive(id)))
    }

    async fn list_archives(
        &self,
        after: &ArchivePlace,
        limit: usize,
    ) -> Result<ArchivePage, StoreError> {
        let mut places = self.archive_places(after, limit.saturating_add(1));
        let more = places.len() > limit;
        places.truncate(limit);
        Ok(ArchivePage {
            // omits archives that were restored meanwhile
            heads: places
                .iter()
                .filter_map(|place| self.archive_head(place))
                .collect(),
            next: more.then(|| places.pop().unwrap_or(*after)),
        })
    }

    async fn restore(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &ThreadPolicy,
    ) -> Result<Option<Thread>, WriteError> {
        self.0.admit()?;
        Ok(self.change(id, |entry, step| entry.restore(life, policy, step))?)
    }
}
