use async_trait::async_trait;

use crate::MemoryStore;
use threadkeep_domain::{Life, Thread, ThreadId, ThreadPolicy};
use threadkeep_store::{
    Archive, ArchiveHead, ArchivePage, ArchivePosition, Archives, StoreError, WriteError,
};

impl MemoryStore {
    fn archive_positions(&self, after: &ArchivePosition, limit: usize) -> Vec<ArchivePosition> {
        let now_ms = self.0.clock.now_ms();
        let mut positions = Vec::new();
        for shard in self.0.each() {
            let past = &shard.past;
            let is_readable = |position: &&ArchivePosition| {
                let archive = position.archive.as_ref();
                archive.is_some_and(|(id, life)| past.archive(id, Some(*life), now_ms).is_some())
            };
            let oldest = ArchivePosition {
                archived_ms: past.archive_cutoff_ms(now_ms) + 1,
                archive: None,
            };
            let later = past.ended_threads.after(after.max(&oldest));
            positions.extend(later.filter(is_readable).take(limit));
        }
        positions.sort_unstable();
        positions.truncate(limit);
        positions
    }

    fn archive_head(&self, position: &ArchivePosition) -> Option<ArchiveHead> {
        let (id, life) = &position.archive?;
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
        after: &ArchivePosition,
        limit: usize,
    ) -> Result<ArchivePage, StoreError> {
        let mut positions = self.archive_positions(after, limit.saturating_add(1));
        let more = positions.len() > limit;
        positions.truncate(limit);
        Ok(ArchivePage {
            // omits archives that were restored meanwhile
            heads: positions
                .iter()
                .filter_map(|position| self.archive_head(position))
                .collect(),
            next: more.then(|| positions.pop().unwrap_or(*after)),
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
