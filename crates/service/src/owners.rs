use std::sync::Arc;

use super::{Export, ExportCursor, ExportCursorError, ImageService, ServiceError};
use threadkeep_domain::{Access, Json, Life, Owner, Thread, ThreadId, member};
use threadkeep_store::{
    Archives, OwnedPosition, OwnerUsage, Owners, StoreError, ThreadOrder, ThreadPage,
};

#[derive(Debug, Clone)]
pub struct OwnerService {
    owners: Arc<dyn Owners>,
    archives: Arc<dyn Archives>,
}

/// Names of top-level metadata members, and their required values as text.
#[derive(Debug, Clone, Default)]
pub struct MetadataFilter(pub Vec<(String, String)>);

/// Number of threads to read per store call. With the largest metadata, a call returns a few MiB.
const BATCH: usize = 50;
/// Maximum number of calls per page when few threads match the filter.
const ROUNDS: usize = 20;
/// Metadata size at which a page ends early, in bytes.
const PAGE_MAX_BYTES: usize = 4 * 1_048_576;

impl OwnerService {
    #[must_use]
    pub fn new(owners: Arc<dyn Owners>, archives: Arc<dyn Archives>) -> Self {
        Self { owners, archives }
    }

    /// Checks whether a caller may access a thread, or the data of an ended thread. Does not extend the thread's
    /// lifetime.
    pub async fn check(&self, id: &ThreadId, access: Access) -> Result<(), ServiceError> {
        if access != Access::All {
            access.check(self.owners.owner_of(id).await?)?;
        }
        Ok(())
    }

    /// Returns whether a caller may see the events of `life`, one of the successive threads with the id `id`. Each of
    /// these threads has its own owner.
    ///
    /// Returns `None` if the owner is not available: that thread has just expired, was erased, or has moved to a
    /// different id. Does not extend the current thread's lifetime.
    pub async fn sees_life(
        &self,
        id: &ThreadId,
        life: Life,
        access: Access,
    ) -> Result<Option<bool>, StoreError> {
        let living = self.owners.peek_thread(id).await?;
        let owner = match living.filter(|thread| thread.stamp.life == life) {
            Some(thread) => thread.owner.as_ref().map(Owner::tag),
            None => match self.archives.get_final(id, life).await? {
                Some(archive) => archive.owner,
                None => return Ok(None),
            },
        };
        Ok(Some(access.check(owner).is_ok()))
    }

    /// Returns a thread without its state. Fails if the caller may not read the thread. Does not extend the thread's
    /// lifetime.
    pub async fn peek(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Thread>, ServiceError> {
        let thread = self.owners.peek_thread(id).await?;
        if let Some(thread) = &thread {
            access.check(thread.owner.as_ref().map(Owner::tag))?;
        }
        Ok(thread)
    }

    /// Counts all threads. The count may include threads that have just ended.
    pub async fn count_threads(&self) -> Result<u64, ServiceError> {
        Ok(self.owners.count_threads().await?)
    }

    /// Lists up to `limit` threads of an owner after `after`, newest first. A page ends early after 1,000 examined
    /// threads or 4 MiB of metadata.
    pub async fn list_owned(
        &self,
        owner: &Owner,
        order: ThreadOrder,
        after: Option<OwnedPosition>,
        limit: usize,
        filter: &MetadataFilter,
    ) -> Result<ThreadPage<OwnedPosition>, ServiceError> {
        let read = async |after: Option<OwnedPosition>, limit| {
            let owners = &self.owners;
            owners
                .list_owned(owner.tag(), order, after.as_ref(), limit)
                .await
        };
        page(read, after, limit, filter).await
    }

    /// Lists up to `limit` threads of all owners after `after`, ordered by id. A page may be short or empty even if
    /// more threads follow.
    pub async fn list_threads(
        &self,
        after: Option<ThreadId>,
        limit: usize,
        filter: &MetadataFilter,
    ) -> Result<ThreadPage<ThreadId>, ServiceError> {
        let read = async |after: Option<ThreadId>, limit| {
            self.owners.list_threads(after.as_ref(), limit).await
        };
        page(read, after, limit, filter).await
    }

    /// Begins an export of the threads of `owner`, or of all threads if `owner` is `None`. The export continues after
    /// the cursor `after`. Fails if `after` is a cursor for a different list.
    pub fn export(
        &self,
        images: ImageService,
        owner: Option<Owner>,
        after: Option<ExportCursor>,
    ) -> Result<Export, ExportCursorError> {
        Export::new(images, Arc::clone(&self.owners), owner, after)
    }

    /// Returns the number and total size of an owner's threads.
    pub async fn measure(&self, owner: &Owner) -> Result<OwnerUsage, ServiceError> {
        Ok(self.owners.measure_owned(owner.tag()).await?)
    }
}

impl MetadataFilter {
    fn is_met_by(&self, metadata: &Json) -> bool {
        let is_met = |(name, text): &(String, String)| {
            let value = member(metadata.as_str(), name);
            value.is_some_and(|value| is_text(value, text))
        };
        self.0.iter().all(is_met)
    }
}

/// Returns whether `value` is a string, an integer or a boolean with the text form `text`.
fn is_text(value: &str, text: &str) -> bool {
    match value.as_bytes()[0] {
        b'"' => serde_json::from_str::<String>(value).is_ok_and(|value| value == text),
        b't' | b'f' => value == text,
        b'-' | b'0'..=b'9' => value == text && !value.contains(['.', 'e', 'E']),
        _ => false,
    }
}

/// Reads a page of matching threads, in several rounds if necessary.
async fn page<P: Copy>(
    read: impl AsyncFn(Option<P>, usize) -> Result<ThreadPage<P>, StoreError>,
    after: Option<P>,
    limit: usize,
    filter: &MetadataFilter,
) -> Result<ThreadPage<P>, ServiceError> {
    let mut threads: Vec<(P, Thread)> = Vec::new();
    let (mut next, mut bytes) = (after, 0);
    for _ in 0..ROUNDS {
        let count = if filter.0.is_empty() {
            BATCH.min(limit - threads.len())
        } else {
            BATCH
        };
        let round = read(next, count).await?;
        next = round.next;
        for (position, thread) in round.threads {
            if !filter.is_met_by(&thread.metadata) {
                continue;
            }
            if threads.len() == limit {
                next = threads.last().map(|(position, _)| *position);
                break;
            }
            bytes += thread.metadata.as_str().len();
            threads.push((position, thread));
        }
        if next.is_none() || threads.len() >= limit || bytes >= PAGE_MAX_BYTES {
            break;
        }
    }
    Ok(ThreadPage { threads, next })
}
