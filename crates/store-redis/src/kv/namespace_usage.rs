use redis::Value;

use super::entry_list::{Range, keys_of};
use super::entry_text::usage;
use super::store::deleted;
use crate::transport::{Command, UNKNOWN, array, bytes, integer};
use crate::{Bucket, EntryKeys, RedisStore, Script, namespace_mark};
use threadkeep_domain::{EntryKey, Namespace};
use threadkeep_store::{KeyOrder, StoreError, Usage};

/// Maximum number of entries that one command purges. An entry takes 5 us, and Redis may run the commands for a hundred
/// buckets in a row.
const PURGED: u64 = 20;
const DELETED: usize = 32;

impl RedisStore {
    pub(super) async fn measure_all(
        &self,
        namespaces: &[Namespace],
    ) -> Result<Vec<Usage>, StoreError> {
        self.delete_ended_entries(namespaces).await?;
        let mut usages = vec![Usage::default(); namespaces.len()];
        let mut left: Vec<_> = self.buckets_of_all().collect();
        while !left.is_empty() {
            let cmds = left.iter().map(|bucket| self.measuring(bucket, namespaces));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            for (bucket, reply) in left.into_iter().zip(replies) {
                let reply = array(reply)?;
                let [purged, counts @ ..] = &reply[..] else {
                    return Err(UNKNOWN);
                };
                if integer(purged)? == PURGED {
                    more.push(bucket);
                    continue;
                }
                for (usage, packed) in usages.iter_mut().zip(counts) {
                    add_counts(usage, packed)?;
                }
            }
            left = more;
        }
        Ok(usages)
    }

    /// Removes the expired entries of `buckets` from the keys that several entries share. The entries' own keys expire
    /// in Redis.
    pub(crate) async fn purge(&self, buckets: &[u16]) -> Result<(), StoreError> {
        let mut left: Vec<_> = buckets.iter().map(|n| self.names.bucket(*n)).collect();
        while !left.is_empty() {
            let cmds = left.iter().map(|bucket| self.measuring(bucket, &[]));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            for (bucket, reply) in left.into_iter().zip(replies) {
                if integer(array(reply)?.first().ok_or(UNKNOWN)?)? == PURGED {
                    more.push(bucket);
                }
            }
            left = more;
        }
        Ok(())
    }

    /// Deletes entries of a namespace in batches. `deleting` builds the command for entries of one bucket. Returns the
    /// sum of the results. Entries that are put concurrently may be deleted too.
    pub(super) async fn delete_entries(
        &self,
        namespace: &Namespace,
        deleting: impl Fn(&[EntryKeys<'_>]) -> Command,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        let after = |last: Option<&EntryKey>| Range::of(namespace, "", last, KeyOrder::Ascending);
        let mut left: Vec<_> = self
            .buckets_of_all()
            .map(|bucket| (bucket, after(None)))
            .collect();
        while !left.is_empty() {
            let cmds = left
                .iter()
                .map(|(bucket, range)| range.range_command(bucket, DELETED));
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            let mut deletions = Vec::new();
            for ((bucket, _), reply) in left.into_iter().zip(replies) {
                let reply = array(reply)?;
                let keys = keys_of(&reply, &self.unreadable);
                let Some(last) = keys.last() else {
                    continue;
                };
                if reply.len() == DELETED {
                    more.push((bucket, after(Some(last))));
                }
                let names: Vec<_> = keys
                    .iter()
                    .map(|key| self.names.entry(namespace, key))
                    .collect();
                deletions.push(deleting(&names));
            }
            // a repeated deletion changes nothing
            let replies = self.background.calls().read_many(deletions).await?;
            for reply in replies {
                total += deleted(&array(reply)?)?.answer;
            }
            left = more;
        }
        Ok(total)
    }

    fn measuring(&self, bucket: &Bucket, namespaces: &[Namespace]) -> Command {
        let mut cmd = Script::Measure.call(4);
        cmd.arg(&bucket.entry_heads)
            .arg(&bucket.entry_members)
            .arg(&bucket.entry_ends)
            .arg(&bucket.entry_counts)
            .arg(self.ahead())
            .arg(PURGED);
        for namespace in namespaces {
            cmd.arg(namespace_mark(namespace));
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
