//! What is in a namespace, gathered from all buckets.

use std::collections::BTreeMap;

use redis::{Cmd, Value};

use super::RedisStore;
use super::entry_text::{head, record};
use super::keys::{BUCKETS, Bucket, EntryKeys, namespace_mark};
use super::link::pipeline;
use super::meta::take;
use super::namespaces::deleted;
use super::replies::{UNKNOWN, array, bytes, integer};
use super::scripts::Script;
use crate::domain::{EntryKey, Namespace};
use crate::store::{EntryHead, EntryPage, NamespacePage, NamespacePlace, StoreError, Usage};

/// Entries that are purged in one step.
const PURGED: u64 = 100;
/// Entries that are deleted in one step.
const DELETED: usize = 32;
const CORRUPT: StoreError = StoreError::Corrupt("a member of an unknown form");

/// A part of the members of a namespace.
struct Range {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Range {
    /// Those whose keys begin with a prefix, after a key.
    fn of(namespace: &Namespace, prefix: &str, after: Option<&EntryKey>) -> Self {
        let bound = |kind: &[u8], text: &str, end: &[u8]| {
            [kind, &namespace_mark(namespace), text.as_bytes(), end].concat()
        };
        Self {
            from: match after {
                Some(after) if after.as_str() >= prefix => bound(b"(", after.as_str(), b""),
                _ => bound(b"[", prefix, b""),
            },
            // no byte of UTF-8 is that high
            to: bound(b"(", prefix, b"\xff"),
        }
    }

    fn in_bucket(&self, bucket: &Bucket, most: usize) -> Cmd {
        let mut cmd = redis::cmd("ZRANGEBYLEX");
        cmd.arg(&bucket.entry_members)
            .arg(&self.from)
            .arg(&self.to)
            .arg("LIMIT")
            .arg(0)
            .arg(most);
        cmd
    }
}

impl RedisStore {
    pub(super) async fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        most: usize,
    ) -> Result<EntryPage, StoreError> {
        let range = Range::of(namespace, prefix, after);
        // buckets have about equal shares, so few have to be asked for much more than that
        let each = most / 32 + 8;
        let cmds = self
            .buckets_of_all()
            .map(|bucket| range.in_bucket(bucket, each));
        let replies = self.aside.calls().read_many(&pipeline(cmds)).await?;
        let mut keys = Vec::new();
        // up to here all buckets were looked at: to the last one listed of one that may have more
        let mut known: Option<EntryKey> = None;
        for reply in replies {
            let found = keys_of(reply)?;
            let last = found.last().filter(|_| found.len() == each).cloned();
            known = known.into_iter().chain(last).min();
            keys.extend(found);
        }
        keys.sort_unstable();
        let is_known = |key: &&EntryKey| known.as_ref().is_none_or(|known| *key <= known);
        let count = keys.iter().take_while(is_known).count().min(most);
        let is_more = count < keys.len() || known.is_some();
        keys.truncate(count);
        Ok(EntryPage {
            next: keys.last().cloned().filter(|_| is_more),
            entries: self.read_entry_heads(namespace, keys).await?,
        })
    }

    /// Those that live, in the order of their keys.
    async fn read_entry_heads(
        &self,
        namespace: &Namespace,
        keys: Vec<EntryKey>,
    ) -> Result<Vec<(EntryKey, EntryHead)>, StoreError> {
        let mut by_bucket: BTreeMap<&str, Vec<(EntryKey, EntryKeys<'_>)>> = BTreeMap::new();
        for key in keys {
            let names = self.names.entry(namespace, &key);
            let bucket = by_bucket.entry(&names.bucket.entry_heads).or_default();
            bucket.push((key, names));
        }
        let cmds = by_bucket.values().map(|some| {
            let mut cmd = Script::EntryHeads.call(2);
            let bucket = some[0].1.bucket;
            cmd.arg(&bucket.entry_heads)
                .arg(&bucket.entry_ends)
                .arg(self.ahead());
            for (_, names) in some {
                cmd.arg(&names.member);
            }
            cmd
        });
        let replies = self.aside.calls().read_many(&pipeline(cmds)).await?;
        let mut entries = Vec::new();
        for (some, reply) in by_bucket.into_values().zip(replies) {
            let reply = array(reply)?;
            for ((key, _), found) in some.into_iter().zip(reply.chunks_exact(2)) {
                let packed = bytes(&found[0])?;
                if !packed.is_empty() {
                    let never = bytes(&found[1])?.is_empty();
                    let ends_ms = if never {
                        None
                    } else {
                        Some(integer(&found[1])?)
                    };
                    entries.push((key, head(packed, ends_ms)?));
                }
            }
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    pub(super) async fn list_newest(
        &self,
        after: Option<&NamespacePlace>,
        most: usize,
    ) -> Result<NamespacePage, StoreError> {
        let [names, newest] = self.names.namespaces();
        let before = after.map_or(b"+".to_vec(), |place| {
            let created = place.created_ms.to_be_bytes();
            [b"(", &created[2..], place.namespace.as_str().as_bytes()].concat()
        });
        let mut cmd = redis::cmd("ZREVRANGEBYLEX");
        cmd.arg(newest).arg(before).arg("-");
        // one more, to know whether there are more
        cmd.arg("LIMIT").arg(0).arg(most + 1);
        let calls = self.aside.calls();
        let listed = array(calls.read(cmd).await?)?;
        let mut places = listed.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let is_more = places.len() > most;
        places.truncate(most);
        let mut page = NamespacePage {
            records: Vec::new(),
            next: places.last().cloned().filter(|_| is_more),
        };
        if places.is_empty() {
            return Ok(page);
        }
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(names);
        for place in &places {
            cmd.arg(place.namespace.as_str());
        }
        for (place, packed) in places.iter().zip(array(calls.read(cmd).await?)?) {
            // deleted since it was listed
            if packed != Value::Nil {
                page.records
                    .push(record(&place.namespace, bytes(&packed)?)?);
            }
        }
        Ok(page)
    }

    pub(super) async fn measure_all(
        &self,
        namespaces: &[Namespace],
    ) -> Result<Vec<Usage>, StoreError> {
        let mut usages = vec![Usage::default(); namespaces.len()];
        let mut left: Vec<_> = self.buckets_of_all().collect();
        while !left.is_empty() {
            let cmds = left.iter().map(|bucket| self.measuring(bucket, namespaces));
            let replies = self.aside.calls().read_many(&pipeline(cmds)).await?;
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

    /// Deletes what has ended in these buckets from all but its own key, which Redis does.
    pub(super) async fn purge(&self, buckets: &[u16]) -> Result<(), StoreError> {
        let mut left: Vec<_> = buckets.iter().map(|n| self.names.bucket(*n)).collect();
        while !left.is_empty() {
            let cmds = left.iter().map(|bucket| self.measuring(bucket, &[]));
            let replies = self.aside.calls().read_many(&pipeline(cmds)).await?;
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

    /// Deletes the entries that a namespace has, batch by batch, and answers how many there were.
    /// What is put meanwhile is deleted or not.
    pub(super) async fn delete_entries(&self, namespace: &Namespace) -> Result<u64, StoreError> {
        let mut total = 0;
        let start = || Range::of(namespace, "", None);
        let mut left: Vec<_> = self
            .buckets_of_all()
            .map(|bucket| (bucket, start()))
            .collect();
        while !left.is_empty() {
            let cmds = left
                .iter()
                .map(|(bucket, range)| range.in_bucket(bucket, DELETED));
            let replies = self.aside.calls().read_many(&pipeline(cmds)).await?;
            let mut more = Vec::new();
            let mut deletions = Vec::new();
            for ((bucket, _), reply) in left.into_iter().zip(replies) {
                let keys = keys_of(reply)?;
                let Some(last) = keys.last() else {
                    continue;
                };
                if keys.len() == DELETED {
                    more.push((bucket, Range::of(namespace, "", Some(last))));
                }
                let names: Vec<_> = keys
                    .iter()
                    .map(|key| self.names.entry(namespace, key))
                    .collect();
                deletions.push(self.deleting(&names, None));
            }
            // what is deleted is deleted, so that doing it again does nothing
            let replies = self.aside.calls().read_many(&pipeline(deletions)).await?;
            for reply in replies {
                total += deleted(&array(reply)?)?;
            }
            left = more;
        }
        Ok(total)
    }

    fn buckets_of_all(&self) -> impl Iterator<Item = &Bucket> {
        (0..BUCKETS as u16).map(|number| self.names.bucket(number))
    }

    fn measuring(&self, bucket: &Bucket, namespaces: &[Namespace]) -> Cmd {
        let mut cmd = Script::Measure.call(4);
        cmd.arg(&bucket.entry_heads)
            .arg(&bucket.entry_members)
            .arg(&bucket.entry_ends)
            .arg(&bucket.entry_counts)
            .arg(self.ahead())
            .arg(PURGED);
        for namespace in namespaces {
            cmd.arg(&namespace_mark(namespace));
        }
        cmd
    }
}

/// The keys of members.
fn keys_of(reply: Value) -> Result<Vec<EntryKey>, StoreError> {
    let key = |member: &Value| {
        let text = bytes(member)?.get(16..).ok_or(CORRUPT)?;
        let text = std::str::from_utf8(text).map_err(|_| CORRUPT)?;
        EntryKey::new(text).map_err(|_| CORRUPT)
    };
    array(reply)?.iter().map(key).collect()
}

/// When a namespace was made, and its name.
fn place(member: &Value) -> Result<NamespacePlace, StoreError> {
    let (mut created, name) = bytes(member)?.split_at_checked(6).ok_or(CORRUPT)?;
    let name = std::str::from_utf8(name).map_err(|_| CORRUPT)?;
    Ok(NamespacePlace {
        created_ms: take(&mut created, 6),
        namespace: Namespace::new(name).map_err(|_| CORRUPT)?,
    })
}

/// Adds what a bucket has of a namespace.
fn add_counts(usage: &mut Usage, packed: &Value) -> Result<(), StoreError> {
    if *packed == Value::Nil {
        return Ok(());
    }
    let mut rest = bytes(packed)?;
    if rest.len() != 18 {
        return Err(CORRUPT);
    }
    usage.entries += take(&mut rest, 6);
    usage.bytes += take(&mut rest, 6);
    usage.last_used_ms = usage.last_used_ms.max(Some(take(&mut rest, 6)));
    Ok(())
}
