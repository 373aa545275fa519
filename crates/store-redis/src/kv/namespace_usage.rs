use redis::Value;

use super::entry_list::{Range, keys_of};
use super::entry_text::usage;
use super::store::deleted;
use crate::transport::{Command, UNKNOWN, array, bytes, integer};
use crate::{Bucket, EntryKeys, RedisStore, Script, namespace_digest};
use threadkeep_domain::{EntryKey, Namespace};
use threadkeep_store::{KeyOrder, StoreError, Usage};

/// Maximum number of entries that one command purges. Purging an entry takes 5 us, and Redis may run the commands for a
/// hundred buckets in a row, so larger batches would delay other clients.
const PURGE_BATCH: u64 = 20;
const DELETE_BATCH: usize = 32;

impl RedisStore {
    pub(super) async fn measure_all(
        &self,
        namespaces: &[Namespace],
    ) -> Result<Vec<Usage>, StoreError> {
        self.delete_ended_entries(namespaces).await?;
        let mut usages = vec![Usage::default(); namespaces.len()];
        let mut remaining: Vec<_> = self.buckets_of_all().collect();
        while !remaining.is_empty() {
            let cmds = remaining
                .iter()
                .map(|bucket| self.measure_command(bucket, namespaces));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            for (bucket, reply) in remaining.into_iter().zip(replies) {
                let reply = array(reply)?;
                let [purged, counts @ ..] = &reply[..] else {
                    return Err(UNKNOWN);
                };
                if integer(purged)? == PURGE_BATCH {
                    more.push(bucket);
                    continue;
                }
                for (usage, packed) in usages.iter_mut().zip(counts) {
                    add_counts(usage, packed)?;
                }
            }
            remaining = more;
        }
        Ok(usages)
    }

    /// Removes the expired entries of `buckets` from the keys that several entries share. The entries' own keys expire
    /// in Redis.
    pub(crate) async fn purge(&self, buckets: &[u16]) -> Result<(), StoreError> {
        let mut remaining: Vec<_> = buckets.iter().map(|n| self.names.bucket(*n)).collect();
        while !remaining.is_empty() {
            let cmds = remaining
                .iter()
                .map(|bucket| self.measure_command(bucket, &[]));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            for (bucket, reply) in remaining.into_iter().zip(replies) {
                if integer(array(reply)?.first().ok_or(UNKNOWN)?)? == PURGE_BATCH {
                    more.push(bucket);
                }
            }
            remaining = more;
        }
        Ok(())
    }

    /// Deletes entries of a namespace in batches. `delete_command` builds the command for one bucket. Returns how many
    /// entries were deleted. Entries that are put concurrently may be deleted too.
    pub(super) async fn delete_entries(
        &self,
        namespace: &Namespace,
        delete_command: impl Fn(&[EntryKeys<'_>]) -> Command,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        let after = |last: Option<&EntryKey>| Range::of(namespace, "", last, KeyOrder::Ascending);
        let mut remaining: Vec<_> = self
            .buckets_of_all()
            .map(|bucket| (bucket, after(None)))
            .collect();
        while !remaining.is_empty() {
            let cmds = remaining
                .iter()
                .map(|(bucket, range)| range.range_command(bucket, DELETE_BATCH));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            let mut deletions = Vec::new();
            for ((bucket, _), reply) in remaining.into_iter().zip(replies) {
                let reply = array(reply)?;
                let keys = keys_of(&reply, &self.unreadable);
                let Some(last) = keys.last() else {
                    continue;
                };
                if reply.len() == DELETE_BATCH {
                    more.push((bucket, after(Some(last))));
                }
                let names: Vec<_> = keys
                    .iter()
                    .map(|key| self.names.entry(namespace, key))
                    .collect();
                deletions.push(delete_command(&names));
            }
            // a repeated deletion changes nothing
            let replies = self.background.calls().read_many(deletions).await?;
            for reply in replies {
                total += deleted(&array(reply)?)?.answer;
            }
            remaining = more;
        }
        Ok(total)
    }

    fn measure_command(&self, bucket: &Bucket, namespaces: &[Namespace]) -> Command {
        let mut cmd = Script::Measure.call(4);
        cmd.arg(&bucket.entry_heads)
            .arg(&bucket.entry_members)
            .arg(&bucket.entry_ends)
            .arg(&bucket.entry_counts)
            .arg(self.ahead())
            .arg(PURGE_BATCH);
        for namespace in namespaces {
            cmd.arg(namespace_digest(namespace));
        }
        cmd
    }
}

fn add_counts(sum: &mut Usage, packed: &Value) -> Result<(), StoreError> {
    if *packed == Value::Nil {
        return Ok(());
    }
    let counts = usage(bytes(packed)?)?;
    sum.entries += counts.entries;
    sum.bytes += counts.bytes;
    sum.last_used_ms = sum.last_used_ms.max(counts.last_used_ms);
    Ok(())
}
