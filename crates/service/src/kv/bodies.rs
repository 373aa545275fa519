use std::collections::VecDeque;

use futures_util::future::try_join_all;

use super::namespaces::NamespaceService;
use crate::ServiceError;
use threadkeep_domain::{EntryKey, Namespace};
use threadkeep_store::{Entry, EntryHead, EntryRange, Reading, StoreError};

/// Maximum total size of the entries in one answer, in bytes. A single entry that exceeds the limit is returned alone.
const BYTES_MAX: u64 = 2 * 1_048_576;
/// Maximum number of entries to read concurrently.
const READ_CONCURRENCY: usize = 16;

#[derive(Debug, Default)]
pub struct EntryBodies {
    /// In the order of the requested keys.
    pub entries: Vec<(EntryKey, Entry)>,
    /// Requested keys that do not exist.
    pub missing: Vec<EntryKey>,
    /// Requested keys that did not fit in the answer.
    pub unread: Vec<EntryKey>,
}

#[derive(Debug)]
pub struct BodyPage {
    pub entries: Vec<(EntryKey, Entry)>,
    /// The key to continue after; `None` on the last page.
    pub next: Option<EntryKey>,
}

impl NamespaceService {
    /// Reads entries until the answer reaches 2 MiB. Returns at least one entry if any of `keys` exists. `weigh`
    /// returns the number of bytes that an entry takes in the answer.
    pub async fn get_many(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
        weigh: impl Fn(&EntryKey, &Entry) -> u64,
    ) -> Result<EntryBodies, ServiceError> {
        let heads = self.namespaces.get_heads(namespace, keys).await?;
        let requested = keys.iter().cloned().zip(heads);
        Ok(self
            .read_bodies(namespace, requested.collect(), weigh)
            .await?)
    }

    /// Lists entries as [`Self::list`] does, and includes their bodies. A page ends early if the next entry would make
    /// it exceed 2 MiB. An entry larger than 2 MiB is returned alone.
    pub async fn list_bodies(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
        weigh: impl Fn(&EntryKey, &Entry) -> u64,
    ) -> Result<BodyPage, ServiceError> {
        let page = self.list(namespace, range, limit).await?;
        let listed = page.entries.into_iter();
        let requested: VecDeque<_> = listed.map(|(key, head)| (key, Some(head))).collect();
        let keys: Vec<_> = requested.iter().map(|(key, _)| key.clone()).collect();
        let read = self.read_bodies(namespace, requested, weigh).await?;
        let count = keys.len() - read.unread.len();
        Ok(BodyPage {
            entries: read.entries,
            next: match read.unread.is_empty() {
                true => page.next,
                false => keys.into_iter().take(count).next_back(),
            },
        })
    }

    async fn read_bodies(
        &self,
        namespace: &Namespace,
        mut requested: VecDeque<(EntryKey, Option<EntryHead>)>,
        weigh: impl Fn(&EntryKey, &Entry) -> u64,
    ) -> Result<EntryBodies, StoreError> {
        let mut read = EntryBodies::default();
        let mut remaining_bytes = BYTES_MAX;
        while !requested.is_empty() && read.unread.is_empty() {
            let count = fitting(&requested, remaining_bytes);
            let batch = requested.drain(..count).map(async |(key, head)| {
                let entry = match head {
                    Some(_) => {
                        self.namespaces
                            .get_entry(namespace, &key, Reading::Plain)
                            .await?
                    }
                    None => None,
                };
                Ok::<_, StoreError>((key, entry))
            });
            for (key, entry) in try_join_all(batch).await? {
                // once an entry does not fit, all later keys remain unread
                if !read.unread.is_empty() {
                    read.unread.push(key);
                    continue;
                }
                let Some(entry) = entry else {
                    read.missing.push(key);
                    continue;
                };
                let bytes = weigh(&key, &entry);
                if bytes > remaining_bytes && !read.entries.is_empty() {
                    read.unread.push(key);
                    continue;
                }
                remaining_bytes = remaining_bytes.saturating_sub(bytes);
                read.entries.push((key, entry));
            }
        }
        read.unread
            .extend(requested.into_iter().map(|(key, _)| key));
        Ok(read)
    }
}

/// Returns how many of the first `requested` entries to read: up to 16 that fit in `remaining_bytes`, but at least one.
fn fitting(requested: &VecDeque<(EntryKey, Option<EntryHead>)>, remaining_bytes: u64) -> usize {
    let mut bytes = 0;
    let sizes = requested
        .iter()
        .map(|(_, head)| head.as_ref().map_or(0, |head| head.size_bytes));
    let fits = |size: &u64| {
        bytes += size;
        bytes <= remaining_bytes
    };
    sizes.take(READ_CONCURRENCY).take_while(fits).count().max(1)
}
