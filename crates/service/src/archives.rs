use std::sync::Arc;

use super::{ServiceError, ThreadService};
use threadkeep_domain::{Life, Refusal, Thread, ThreadId};
use threadkeep_store::{Archive, ArchiveHead, ArchivePage, ArchivePosition, Archives};

#[derive(Debug, Clone)]
pub struct ArchiveService {
    archives: Arc<dyn Archives>,
    threads: ThreadService,
}

/// Number of archives to read per store call. With 128 KiB of metadata per archive, a call returns about 6 MiB.
const BATCH: usize = 50;
/// Metadata size at which a page ends early, in bytes.
const PAGE_MAX_BYTES: usize = 4 * 1_048_576;

impl ArchiveService {
    #[must_use]
    pub fn new(archives: Arc<dyn Archives>, threads: ThreadService) -> Self {
        Self { archives, threads }
    }

    /// Returns the archive of `life` (one creation and end of the thread), or of the last life if `life` is `None`.
    pub async fn get(&self, id: &ThreadId, life: Option<Life>) -> Result<Archive, ServiceError> {
        let archive = self.archives.get_archive(id, life).await?;
        archive.ok_or(ServiceError::ArchiveNotFound)
    }

    /// Lists up to `limit` archives after `after`, in order of creation. A page ends early after 4 MiB of metadata.
    pub async fn list(
        &self,
        after: &ArchivePosition,
        limit: usize,
    ) -> Result<ArchivePage, ServiceError> {
        let mut page = ArchivePage {
            heads: Vec::new(),
            next: Some(*after),
        };
        let (mut remaining, mut bytes) = (limit, 0);
        while let Some(after) = page.next
            && remaining > 0
            && bytes < PAGE_MAX_BYTES
        {
            let count = remaining.min(BATCH);
            let part = self.archives.list_archives(&after, count).await?;
            remaining -= count;
            bytes += part.heads.iter().map(metadata_bytes).sum::<usize>();
            page.heads.extend(part.heads);
            page.next = part.next;
        }
        Ok(page)
    }

    /// Restores a thread from the archive of `life`, or from the latest archive if `life` is `None`. Fails with
    /// [`ServiceError::ThreadExists`] if the thread exists.
    pub async fn restore(&self, id: &ThreadId, life: Option<Life>) -> Result<Thread, ServiceError> {
        let policy = self.threads.policy();
        let restored = if self.threads.limits_owners() {
            // restores exactly the archive that was read, because the slot is reserved for that archive's owner
            let Archive { head, owner, .. } = self.get(id, life).await?;
            let restoring = self.archives.restore(id, Some(head.life), policy);
            self.threads.with_reservation(owner, restoring).await
        } else {
            let restored = self.archives.restore(id, life, policy).await;
            restored.map_err(Into::into)
        };
        match restored {
            Ok(thread) => thread.ok_or(ServiceError::ArchiveNotFound),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                Err(ServiceError::ThreadExists)
            }
            Err(error) => Err(error),
        }
    }
}

fn metadata_bytes(head: &ArchiveHead) -> usize {
    head.metadata.as_str().len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use threadkeep_domain::{Conditions, Json, MetadataChange, ThreadPolicy, Write};
    use threadkeep_store::{Clock, Destroy, Store as _};
    use threadkeep_store_memory::MemoryStore;

    #[tokio::test]
    async fn a_page_ends_early_at_the_metadata_limit() {
        const THREADS: usize = 120;
        let store = MemoryStore::new(Clock::system());
        let policy = ThreadPolicy {
            max_metadata_bytes: 131_072,
            ..ThreadPolicy::THREAD
        };
        let metadata = MetadataChange {
            new: Json::from_strings(&[("x".repeat(100_000))]),
            old: None,
        };
        let destroy = Destroy {
            tombstone: Duration::ZERO,
            conditions: Conditions::default(),
        };
        for _ in 0..THREADS {
            let id = ThreadId::random();
            let write = Write {
                metadata: Some(&metadata),
                ..Write::new(&policy)
            };
            store.write(&id, &write).await.unwrap();
            store.destroy(&id, &destroy).await.unwrap();
        }
        let threads = ThreadService::new(Arc::new(store.clone()), policy, Duration::ZERO);
        let archives = ArchiveService::new(Arc::new(store), threads);

        let mut pages = Vec::new();
        let mut next = Some(ArchivePosition {
            archived_ms: 0,
            archive: None,
        });
        while let Some(after) = next {
            let page = archives.list(&after, 1_000).await.unwrap();
            pages.push(page.heads.len());
            next = page.next;
        }

        assert_eq!(pages, [BATCH, BATCH, THREADS - 2 * BATCH]);
    }
}
