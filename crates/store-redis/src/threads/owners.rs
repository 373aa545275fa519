//! Lists threads. The script that writes a thread also adds it to the lists in its bucket, so the lists are complete.
//! Each page reads from all buckets.

use std::collections::HashMap;
use std::slice;
use std::time::Duration;

use async_trait::async_trait;
use redis::Value;

use super::index::{Part, read_part};
use super::owned_positions::portion;
use super::{arguments, replies};
use crate::shared::Meta;
use crate::transport::{Command, UNKNOWN, array, bytes, command, integer};
use crate::{RedisStore, Script};
use threadkeep_domain::{OwnerTag, Thread, ThreadId};
use threadkeep_store::merged::merge;
use threadkeep_store::{
    HistoryPreview, OwnedPosition, OwnerUsage, Owners, ReservationToken, StoreError, ThreadOrder,
    ThreadPage, millis,
};

/// Maximum number of threads in a bucket that one script counts. The script takes less than a millisecond.
const MEASURE_BATCH: u64 = 400;

#[async_trait]
impl Owners for RedisStore {
    async fn list_owned(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPosition>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPosition>, StoreError> {
        let (positions, next) = self.owned_positions(owner, order, after, limit).await?;
        let ids: Vec<_> = positions.iter().map(|(_, id)| *id).collect();
        let heads = self.heads(&ids, Some(owner)).await?;
        Ok(ThreadPage {
            threads: present(&positions, heads),
            next,
        })
    }

    async fn list_threads(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<ThreadPage<ThreadId>, StoreError> {
        let cursor = after.map_or_else(String::new, ThreadId::to_string);
        let portion = portion(limit);
        let buckets = self.names.buckets().iter();
        let mut unread: Vec<_> = buckets.map(|bucket| (bucket, cursor.clone())).collect();
        let mut parts = Vec::new();
        while !unread.is_empty() {
            let cmds = unread.iter().map(|(bucket, group)| {
                let mut cmd = Script::ListIds.call(1);
                cmd.arg(&bucket.index).arg(group).arg(&cursor).arg(portion);
                cmd
            });
            let replies = self
                .link
                .calls()
                .read_many(cmds.collect::<Vec<_>>())
                .await?;
            let mut again = Vec::new();
            for ((bucket, _), reply) in unread.into_iter().zip(replies) {
                match read_part(&reply, after, portion, &self.unreadable)? {
                    Part::Read(part) => parts.push(part),
                    Part::Before(next) => again.push((bucket, next)),
                }
            }
            unread = again;
        }
        let (ids, next) = merge(parts, limit);
        let heads = self.heads(&ids, None).await?;
        Ok(ThreadPage {
            threads: present(&ids, heads),
            next,
        })
    }

    async fn peek_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        let heads = self.heads(slice::from_ref(id), None).await?;
        Ok(heads.into_iter().next().flatten())
    }

    async fn count_threads(&self) -> Result<u64, StoreError> {
        let cmds = self.names.buckets().iter().map(|bucket| {
            let mut cmd = Script::CountIds.call(1);
            cmd.arg(&bucket.index);
            cmd
        });
        let counts = self.link.calls().read_many(cmds).await?;
        counts.iter().map(integer).sum()
    }

    async fn owner_of(&self, id: &ThreadId) -> Result<Option<OwnerTag>, StoreError> {
        let bucket = self.names.bucket_of(id);
        let cmds = [bucket.thread(id), bucket.archive(id)].map(|key| {
            let mut cmd = command("HGET");
            cmd.arg(key).arg("M");
            cmd
        });
        let metas = self.link.calls().read_many(cmds).await?;
        match metas.iter().find(|meta| **meta != Value::Nil) {
            Some(meta) => Ok(Meta::read(bytes(meta)?)?.owner),
            None => Ok(None),
        }
    }

    async fn preview_histories(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryPreview>>, StoreError> {
        self.previews(ids, opening).await
    }

    async fn measure_owned(&self, owner: OwnerTag) -> Result<OwnerUsage, StoreError> {
        let mut owned = OwnerUsage::default();
        let mut from = 0;
        let mut buckets: Vec<_> = self.names.buckets().iter().collect();
        while !buckets.is_empty() {
            let cmds = buckets.iter().map(|bucket| {
                let mut cmd = Script::MeasureOwned.call(1);
                cmd.arg(bucket.owned(owner, ThreadOrder::Created))
                    .arg(self.ahead())
                    .arg(from)
                    .arg(MEASURE_BATCH);
                cmd
            });
            let replies = self
                .link
                .calls()
                .read_many(cmds.collect::<Vec<_>>())
                .await?;
            let mut more = Vec::new();
            for (bucket, reply) in buckets.into_iter().zip(replies) {
                let [seen, threads, bytes] = &array(reply)?[..] else {
                    return Err(UNKNOWN);
                };
                owned.threads += integer(threads)?;
                owned.size_bytes += integer(bytes)?;
                if integer(seen)? == MEASURE_BATCH {
                    more.push(bucket);
                }
            }
            buckets = more;
            from += MEASURE_BATCH;
        }
        Ok(owned)
    }

    async fn count_owned(&self, owner: OwnerTag) -> Result<u64, StoreError> {
        let cmds = self.names.buckets().iter().map(|bucket| {
            let mut cmd = command("ZCARD");
            cmd.arg(bucket.owned(owner, ThreadOrder::Created));
            cmd
        });
        let counts = self.link.calls().read_many(cmds).await?;
        counts.iter().map(integer).sum()
    }

    async fn reserve_thread(
        &self,
        owner: OwnerTag,
        token: ReservationToken,
        lasts: Duration,
    ) -> Result<u64, StoreError> {
        let mut cmd = Script::ReserveThread.call(1);
        cmd.arg(self.names.reservations(owner))
            .arg(self.ahead())
            .arg(token.0)
            .arg(millis(lasts));
        integer(&self.link.calls().write(cmd).await?)
    }

    async fn release_reservation(
        &self,
        owner: OwnerTag,
        token: ReservationToken,
    ) -> Result<(), StoreError> {
        let mut cmd = command("ZREM");
        cmd.arg(self.names.reservations(owner)).arg(token.0);
        self.link.calls().write(cmd).await.map(drop)
    }
}

impl RedisStore {
    async fn heads(
        &self,
        ids: &[ThreadId],
        owner: Option<OwnerTag>,
    ) -> Result<Vec<Option<Thread>>, StoreError> {
        let tag = owner.map_or_else(String::new, |owner| owner.to_string());
        let mut by_bucket: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, id) in ids.iter().enumerate() {
            let bucket = crate::keys::bucket_number(id);
            by_bucket.entry(bucket).or_default().push(index);
        }
        let by_bucket: Vec<_> = by_bucket.into_values().collect();
        let cmds: Vec<Command> = by_bucket
            .iter()
            .map(|indexes| {
                let mut cmd = Script::Heads.call(indexes.len());
                for index in indexes {
                    cmd.arg(self.names.thread(&ids[*index]));
                }
                cmd.arg(self.ahead())
                    .arg(&tag)
                    .arg(arguments::archive_ms(&self.retention));
                cmd
            })
            .collect();
        let replies = self.link.calls().read_many(cmds).await?;
        let mut heads: Vec<Option<Thread>> = vec![None; ids.len()];
        for (indexes, reply) in by_bucket.iter().zip(replies) {
            for (index, reply) in indexes.iter().zip(array(reply)?) {
                heads[*index] = replies::thread(reply)?;
            }
        }
        Ok(heads)
    }
}

fn present<P: Copy>(positions: &[P], heads: Vec<Option<Thread>>) -> Vec<(P, Thread)> {
    let heads = positions.iter().zip(heads);
    heads
        .filter_map(|(position, head)| Some((*position, head?)))
        .collect()
}
