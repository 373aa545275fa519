//! States that this process has read or written, in bounded memory.
//!
//! A copy is never trusted by itself: each read asks Redis which content the thread has at that moment, and takes the
//! copy only if it is of the same [`Mark`]. So there is nothing to invalidate, and a copy that is out of date costs one
//! more call. A write of this process that was done to the content of a copy is done to the copy too.

mod copy;
mod mark;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;

pub(crate) use copy::{Form, Moved, ThreadCopy};
pub(crate) use mark::Mark;
use threadkeep_domain::heap::Heap as _;
use threadkeep_domain::{ThreadId, Write};
use threadkeep_store::CacheUse;

/// Parts of the cache, each with a lock and an equal share of the bytes. One state takes at most a share.
const SHARDS: usize = 8;
/// The bytes of an entry besides its content: itself, its place in the table and in the order.
const ENTRY_BYTES: u64 = (size_of::<ThreadId>() + size_of::<ThreadCopy>() + 64) as u64;

/// Copies of threads, the least recently used of which are evicted first. All workers share them.
pub(crate) struct ReadCache {
    shards: [Mutex<Shard>; SHARDS],
    /// Bytes that a shard may take.
    share: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    evicted: AtomicU64,
}

struct Shard {
    copies: LruCache<ThreadId, ThreadCopy>,
    bytes: u64,
}

/// The facts about a copy before Redis is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyInfo {
    /// The content that it is a copy of.
    pub(crate) mark: Mark,
    /// Whether the end of the thread was moved so short a time ago that it need not be moved.
    pub(crate) is_moved: bool,
}

impl ReadCache {
    /// One that takes at most `max_bytes`; none for 0.
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

    /// Checks whether there is a copy of a thread for reads of that form.
    pub(crate) fn copy_info(&self, id: &ThreadId, form: Form, ahead_ms: u64) -> Option<CopyInfo> {
        let shard = self.shard(id);
        let copy = shard.copies.peek(id).filter(|copy| copy.is_for(form))?;
        Some(CopyInfo {
            mark: *copy.mark(),
            is_moved: copy.is_moved(ahead_ms),
        })
    }

    /// Notes that a thread of that mark had its end moved.
    pub(crate) fn note_moved(&self, id: &ThreadId, mark: &Mark, moved: Moved) {
        if let Some(copy) = self.shard(id).copies.peek_mut(id)
            && copy.mark() == mark
        {
            copy.note_moved(moved);
        }
    }

    /// Notes a read without a copy.
    pub(crate) fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the copy of a thread that now has that mark, and notes that its end was moved, if it was. None, and a miss, if
    /// the copy has another mark or is of no use.
    pub(crate) fn read<T>(
        &self,
        id: &ThreadId,
        mark: &Mark,
        moved: Option<Moved>,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Option<T> {
        let read = self.read_copy(id, mark, moved, form, read);
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
        mark: &Mark,
        moved: Option<Moved>,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Option<T> {
        let mut shard = self.shard(id);
        let copy = shard.copies.get_mut(id)?;
        if copy.mark() != mark {
            // a slower reader may have asked before the copy was made
            if !copy.mark().is_later_than(mark) {
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
        // what takes longer is done while others use the shard
        let mut copy = shard.take(id)?;
        drop(shard);
        let read = read(&mut copy)?;
        self.keep(*id, copy);
        Some(read)
    }

    /// Keeps a copy, unless there is one of a later version, and evicts others for it.
    pub(crate) fn keep(&self, id: ThreadId, copy: ThreadCopy) {
        let mut shard = self.shard(&id);
        let kept = shard.copies.peek(&id);
        if kept.is_some_and(|kept| kept.mark().is_later_than(copy.mark())) {
            return;
        }
        // the old copy is freed when others can use the shard again
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

    /// Follows a write of this process, which led to that mark, given when the thread was last written to before: 0 if it is
    /// new.
    pub(crate) fn follow(&self, id: &ThreadId, write: &Write<'_>, mark: Mark, written_ms: u64) {
        let mut shard = self.shard(id);
        let Some(copy) = shard.copies.peek(id) else {
            drop(shard);
            if written_ms == 0 && mark.meta.owner.is_none() {
                self.begin(*id, write, mark);
            }
            return;
        };
        if *copy.mark() == mark {
            return;
        }
        let is_next = mark.is_next_after(copy.mark(), written_ms);
        let Some(mut copy) = shard.take(id) else {
            return;
        };
        drop(shard);
        if is_next && copy.follow(write, mark) {
            self.keep(*id, copy);
        }
    }

    /// Keeps a copy of a thread that a write of this process has made, as the least recently used one: threads that clients make
    /// without end take no room of those that are read. The life is that of this write alone, so the mark names its content.
    fn begin(&self, id: ThreadId, write: &Write<'_>, mark: Mark) {
        let mut copy = ThreadCopy::empty(mark);
        if copy.follow(write, mark) {
            self.keep(id, copy);
            self.shard(&id).copies.demote(&id);
        }
    }

    /// Keeps the compressed form of a rendered state, if the copy still has that.
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

    /// Drops the copy of a thread.
    pub(crate) fn forget(&self, id: &ThreadId) {
        let old = self.shard(id).take(id);
        drop(old);
    }

    /// How it is used.
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
        // ids are random, and each is signed before it gets here
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

/// The bytes that a copy asks of the allocator, and half of that again: as much is lost to gaps where contents of one size make
/// room for those of another.
fn bytes_of(copy: &ThreadCopy) -> u64 {
    (ENTRY_BYTES + copy.heap_bytes()) * 3 / 2
}

/// Nothing is half done where a panic can leave this.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// It holds states.
impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").finish_non_exhaustive()
    }
}
