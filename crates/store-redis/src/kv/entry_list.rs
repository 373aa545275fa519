use std::cmp::Ordering;
use std::collections::BTreeMap;

use redis::Value;

use super::entry_text::head;
use crate::transport::{Command, array, bytes, command, integer};
use crate::{BUCKETS, Bucket, EntryKeys, RedisStore, Script, Unreadable, namespace_digest};
use threadkeep_domain::{EntryKey, Namespace};
use threadkeep_store::{EntryHead, EntryPage, EntryRange, KeyOrder, StoreError};

const CORRUPT: StoreError = StoreError::Corrupt("a member of an unknown form");

pub(crate) struct Range {
    from: Vec<u8>,
    to: Vec<u8>,
    order: KeyOrder,
}

impl Range {
    /// Selects the keys that begin with `prefix` and come after `after` in `order`.
    pub(crate) fn of(
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        order: KeyOrder,
    ) -> Self {
        let bound = |kind: &[u8], text: &str, end: &[u8]| {
            [kind, &namespace_digest(namespace), text.as_bytes(), end].concat()
        };
        let first = bound(b"[", prefix, b"");
        // UTF-8 never contains the byte 0xff
        let last = bound(b"(", prefix, b"\xff");
        let is_within = |after: &&EntryKey| match order {
            KeyOrder::Ascending => after.as_str() >= prefix,
            KeyOrder::Descending => after.as_str() < prefix || after.as_str().starts_with(prefix),
        };
        let after = after
            .filter(is_within)
            .map(|after| bound(b"(", after.as_str(), b""));
        let (from, to) = match order {
            KeyOrder::Ascending => (after.unwrap_or(first), last),
            KeyOrder::Descending => (after.unwrap_or(last), first),
        };
        Self { from, to, order }
    }

    pub(super) fn range_command(&self, bucket: &Bucket, limit: usize) -> Command {
        let mut cmd = command(match self.order {
            KeyOrder::Ascending => "ZRANGEBYLEX",
            KeyOrder::Descending => "ZREVRANGEBYLEX",
        });
        cmd.arg(&bucket.entry_members)
            .arg(&self.from)
            .arg(&self.to)
            .arg("LIMIT")
            .arg(0)
            .arg(limit);
        cmd
    }
}

fn compare(order: KeyOrder, one: &EntryKey, other: &EntryKey) -> Ordering {
    match order {
        KeyOrder::Ascending => one.cmp(other),
        KeyOrder::Descending => other.cmp(one),
    }
}

impl RedisStore {
    pub(crate) async fn list(
        &self,
        namespace: &Namespace,
        requested: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        let since_ms = self.use_namespace(&self.link.calls(), namespace).await?;
        let EntryRange {
            prefix,
            after,
            order,
        } = requested;
        let range = Range::of(namespace, prefix, after, order);
        // reads twice a bucket's average share of a page, plus 8 keys, so that one read suffices for most buckets
        let each = limit / (BUCKETS / 2) + 8;
        let cmds = self
            .buckets_of_all()
            .map(|bucket| range.range_command(bucket, each));
        let replies = self.background.calls().read_many(cmds).await?;
        let mut keys = Vec::new();
        let first = |one: &EntryKey, other: &EntryKey| compare(order, one, other);
        // Every bucket has been read up to `read_to`. A bucket that may have more keys has been read up to the last key
        // of its reply, and `read_to` is the first of these last keys.
        let mut read_to: Option<EntryKey> = None;
        for reply in replies {
            let reply = array(reply)?;
            let bucket_keys = keys_of(&reply, &self.unreadable);
            let last = bucket_keys.last().filter(|_| reply.len() == each).cloned();
            read_to = read_to.into_iter().chain(last).min_by(first);
            keys.extend(bucket_keys);
        }
        keys.sort_unstable_by(first);
        let is_read = |key: &&EntryKey| {
            let read_to = read_to.as_ref();
            read_to.is_none_or(|read_to| compare(order, key, read_to).is_le())
        };
        let count = keys.iter().take_while(is_read).count().min(limit);
        let has_more = count < keys.len() || read_to.is_some();
        keys.truncate(count);
        let next = keys.last().cloned().filter(|_| has_more);
        let mut entries = self.read_entry_heads(namespace, keys, since_ms).await?;
        entries.sort_unstable_by(|(one, _), (other, _)| first(one, other));
        Ok(EntryPage { entries, next })
    }

    pub(super) async fn read_entry_heads(
        &self,
        namespace: &Namespace,
        keys: Vec<EntryKey>,
        since_ms: u64,
    ) -> Result<Vec<(EntryKey, EntryHead)>, StoreError> {
        let mut by_bucket: BTreeMap<&str, Vec<(EntryKey, EntryKeys<'_>)>> = BTreeMap::new();
        for key in keys {
            let names = self.names.entry(namespace, &key);
            let bucket = by_bucket.entry(&names.bucket.entry_heads).or_default();
            bucket.push((key, names));
        }
        let cmds = by_bucket.values().map(|members| {
            let mut cmd = Script::EntryHeads.call(2);
            let bucket = members[0].1.bucket;
            cmd.arg(&bucket.entry_heads)
                .arg(&bucket.entry_ends)
                .arg(self.ahead())
                .arg(since_ms);
            for (_, names) in members {
                cmd.arg(&names.member);
            }
            cmd
        });
        let replies = self.background.calls().read_many(cmds).await?;
        let mut entries = Vec::new();
        for (members, reply) in by_bucket.into_values().zip(replies) {
            let reply = array(reply)?;
            for ((key, _), pair) in members.into_iter().zip(reply.chunks_exact(2)) {
                let packed = bytes(&pair[0])?;
                if !packed.is_empty() {
                    let never_ends = bytes(&pair[1])?.is_empty();
                    let ends_ms = if never_ends {
                        None
                    } else {
                        Some(integer(&pair[1])?)
                    };
                    let head = self.unreadable.skip_one("entries", head(packed, ends_ms));
                    entries.extend(head.map(|head| (key, head)));
                }
            }
        }
        Ok(entries)
    }

    pub(super) fn buckets_of_all(&self) -> impl Iterator<Item = &Bucket> {
        (0..BUCKETS as u16).map(|number| self.names.bucket(number))
    }
}

pub(super) fn keys_of(members: &[Value], unreadable: &Unreadable) -> Vec<EntryKey> {
    let key = |member: &Value| {
        let text = bytes(member)?.get(16..).ok_or(CORRUPT)?;
        let text = std::str::from_utf8(text).map_err(|_| CORRUPT)?;
        EntryKey::new(text).map_err(|_| CORRUPT)
    };
    unreadable.skip("entries", members.iter().map(key))
}
