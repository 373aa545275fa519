//! Caches states that this process has read or written, in bounded memory.
//!
//! Each read asks Redis for the current [`ContentId`] of the thread, and uses the copy only if the copy has the same
//! id. Copies therefore do not need to be invalidated, and a stale copy costs only one more call. When this process
//! writes a thread, it also updates the copy.

mod content_id;
mod copy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;

pub(crate) use content_id::ContentId;
pub(crate) use copy::{Form, Moved, ThreadCopy};
use threadkeep_domain::heap::Heap as _;
use threadkeep_domain::{ThreadId, Write};
use threadkeep_store::CacheUse;

/// Number of shards of the cache. Each shard has its own lock and an equal share of the byte limit. A state that is
/// larger than this share is not cached.
const SHARDS: usize = 8;
/// Size in bytes of a cache entry without its content: key, value, and slots in the hash table and the eviction order.
const ENTRY_BYTES: u64 = (size_of::<ThreadId>() + size_of::<ThreadCopy>() + 64) as u64;

/// Copies of threads, shared by all workers. The least recently used copies are evicted first.
pub(crate) struct ReadCache {
    shards: [Mutex<Shard>; SHARDS],
    share: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    evicted: AtomicU64,
}

struct Shard {
    copies: LruCache<ThreadId, ThreadCopy>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyInfo {
    pub(crate) content_id: ContentId,
    pub(crate) is_moved: bool,
}

impl ReadCache {
    pub(crate) fn of_bytes(max_bytes: u64) -> Option<Self> {
        (max_bytes > 0).then(|| Self {
            shards: std::array::from_fn(|_| {
                Mutex::new(Shard {
                    copies: LruCache::unbounded(),
                    bytes: 0,
                })
            }),
            share: max_bytes / SHARDS as u64,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        })
    }

    pub(crate) fn copy_info(&self, id: &ThreadId, form: Form, ahead_ms: u64) -> Option<CopyInfo> {
        let shard = self.shard(id);
        let copy = shard.copies.peek(id).filter(|copy| copy.is_for(form))?;
        Some(CopyInfo {
            content_id: *copy.content_id(),
            is_moved: copy.is_moved(ahead_ms),
        })
    }

    pub(crate) fn note_moved(&self, id: &ThreadId, content_id: &ContentId, moved: Moved) {
        if let Some(copy) = self.shard(id).copies.peek_mut(id)
            && copy.content_id() == content_id
        {
            copy.note_moved(moved);
        }
    }

    pub(crate) fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the copy of a thread whose current content in Redis is `content_id`, and records `moved` in the copy.
    /// Returns `None` and counts a miss if the copy has different content or is unusable.
    pub(crate) fn read<T>(
        &self,
        id: &ThreadId,
        content_id: &ContentId,
        moved: Option<Moved>,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Option<T> {
        let read = self.read_copy(id, content_id, moved, form, read);
        match read {
            Some(_) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
            }
            None => self.count_miss(),
        }
        read
    }

    fn read_copy<T>(
        &self,
        id: &ThreadId,
        content_id: &ContentId,
        moved: Option<Moved>,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Option<T> {
        let mut shard = self.shard(id);
        let copy = shard.copies.get_mut(id)?;
        if copy.content_id() != content_id {
            // keeps a newer copy: a slow reader may have asked Redis before that copy was made
            if !copy.content_id().is_later_than(content_id) {
                let _old = shard.take(id);
                drop(shard);
            }
            return None;
        }
        if let Some(moved) = moved {
            copy.note_moved(moved);
        }
        if copy.has(form) {
            return read(copy);
        }
        // reads without the lock, because rendering and parsing can take long
        let mut copy = shard.take(id)?;
        drop(shard);
        let read = read(&mut copy)?;
        self.keep(*id, copy);
        Some(read)
    }

    /// Stores a copy unless the cache has a later version, and evicts other copies to make room.
    pub(crate) fn keep(&self, id: ThreadId, copy: ThreadCopy) {
        let mut shard = self.shard(&id);
        let existing = shard.copies.peek(&id);
        if existing.is_some_and(|existing| existing.content_id().is_later_than(copy.content_id())) {
            return;
        }
        // takes the old copy out of the shard, so that it is freed after the lock is released
        let _old = shard.take(&id);
        let bytes = bytes_of(&copy);
        if bytes > self.share {
            drop(shard);
            return;
        }
        let mut evicted = Vec::new();
        while shard.bytes + bytes > self.share
            && let Some((_, oldest)) = shard.copies.pop_lru()
        {
            shard.bytes -= bytes_of(&oldest);
            evicted.push(oldest);
        }
        shard.bytes += bytes;
        shard.copies.put(id, copy);
        drop(shard);
        self.evicted
            .fetch_add(evicted.len() as u64, Ordering::Relaxed);
    }

    /// Applies a write of this process that resulted in `content_id`. `written_ms` is the time of the thread's previous
    /// write, or 0 for a new thread.
    pub(crate) fn follow(
        &self,
        id: &ThreadId,
        write: &Write<'_>,
        content_id: ContentId,
        written_ms: u64,
    ) {
        let mut shard = self.shard(id);
        let Some(copy) = shard.copies.peek(id) else {
            drop(shard);
            if written_ms == 0 && content_id.meta.owner.is_none() {
                self.begin(*id, write, content_id);
            }
            return;
        };
        if *copy.content_id() == content_id {
            return;
        }
        let is_next = content_id.is_next_after(copy.content_id(), written_ms);
        let Some(mut copy) = shard.take(id) else {
            return;
        };
        drop(shard);
        if is_next && copy.follow(write, content_id) {
            self.keep(*id, copy);
        }
    }

    /// Stores a copy of a thread that this process created. Marks it as least recently used, so that a stream of new
    /// threads does not evict threads that are read. The content is known without a read, because the life is new.
    fn begin(&self, id: ThreadId, write: &Write<'_>, content_id: ContentId) {
        let mut copy = ThreadCopy::empty(content_id);
        if copy.follow(write, content_id) {
            self.keep(id, copy);
            self.shard(&id).copies.demote(&id);
        }
    }

    pub(crate) fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
        let mut shard = self.shard(id);
        let copy = shard.copies.peek(id);
        if !copy.is_some_and(|copy| copy.is_rendered_as(text)) {
            return;
        }
        let Some(mut copy) = shard.take(id) else {
            return;
        };
        drop(shard);
        copy.keep_compressed(Some(gzip));
        if bytes_of(&copy) > self.share {
            copy.keep_compressed(None);
        }
        self.keep(*id, copy);
    }

    pub(crate) fn forget(&self, id: &ThreadId) {
        let old = self.shard(id).take(id);
        drop(old);
    }

    pub(crate) fn usage(&self) -> CacheUse {
        let sizes = self.shards.iter().map(|shard| lock(shard).bytes);
        CacheUse {
            limit_bytes: self.share * SHARDS as u64,
            used_bytes: sizes.sum(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    fn shard(&self, id: &ThreadId) -> MutexGuard<'_, Shard> {
        // ids are random, and their signature was checked
        let mixed = id.as_bytes().iter().fold(0, |mixed, byte| mixed ^ byte);
        lock(&self.shards[usize::from(mixed) % SHARDS])
    }
}

impl Shard {
    fn take(&mut self, id: &ThreadId) -> Option<ThreadCopy> {
        let copy = self.copies.pop(id)?;
        self.bytes -= bytes_of(&copy);
        Some(copy)
    }
}

/// Returns one and a half times the number of bytes that a copy allocates. The extra half accounts for memory
/// fragmentation when contents of one size replace contents of another size.
fn bytes_of(copy: &ThreadCopy) -> u64 {
    (ENTRY_BYTES + copy.heap_bytes()) * 3 / 2
}

/// Locks a shard even after a panic, because a panic does not leave a shard in an inconsistent state.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Omits the states.
impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").finish_non_exhaustive()
    }
}
