use async_trait::async_trait;
use redis::Value;

use super::transport::{Command, command};
use super::{RedisStore, Script};
use crate::shared::{archive_names, arguments};
use crate::transport::{UNKNOWN, array, bytes, integer, text};
use threadkeep_domain::{Position, ThreadId};
use threadkeep_store::{Due, Reaped, StoreError, Upkeep};

/// Number of buckets that are checked together. Meanwhile, Redis does not serve other clients. Checking all buckets
/// takes 4 ms in total, once a second.
const BUCKET_BATCH: usize = 16;
const SWEEP_BATCH: usize = 100;
/// Approximate maximum number of events that one call deletes. A call takes Redis 0.1 ms for typical events, and 30 ms
/// for the largest events, which name keys of 64 KiB.
const TRIMMED_MAX: usize = 5_000;

#[async_trait]
impl Upkeep for RedisStore {
    async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError> {
        let build = |bucket: &u16| {
            let mut cmd = Script::Due.call(1);
            cmd.arg(&self.names.bucket(*bucket).index)
                .arg(self.ahead())
                .arg(limit);
            cmd
        };
        let mut due = Due::default();
        for reply in self.for_each_bucket(buckets, build).await? {
            let reply = array(reply)?;
            let [now_ms, Value::Array(ids)] = &reply[..] else {
                return Err(UNKNOWN);
            };
            let skew_ms = integer(now_ms)? as i64 - self.clock.system_ms() as i64;
            // each server of a cluster has its own clock
            if skew_ms.abs() > due.skew_ms.abs() {
                due.skew_ms = skew_ms;
            }
            let read = |id| text(id)?.parse().map_err(|_| UNKNOWN);
            due.ids.push(
                self.unreadable
                    .skip("the index of threads", ids.iter().map(read)),
            );
        }
        Ok(due)
    }

    async fn end_due(&self, bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError> {
        let keys = self.names.bucket(bucket);
        let mut cmd = Script::EndDue.call(2 + 2 * ids.len());
        cmd.arg(&keys.log).arg(&keys.archives);
        for id in ids {
            cmd.arg(keys.thread(id)).arg(keys.archive(id));
        }
        cmd.arg(self.ahead())
            .arg(arguments::archive_ms(&self.retention));
        for id in ids {
            cmd.arg(id.as_str());
        }
        // an ended thread is no longer due, so repeating the call is harmless
        let reply = array(self.background.calls().read(cmd).await?)?;
        let [ended, lost, moved] = &reply[..] else {
            return Err(UNKNOWN);
        };
        Ok(Reaped {
            ended: integer(ended)?,
            lost: integer(lost)?,
            moved: integer(moved)?,
        })
    }

    async fn tidy(&self, buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError> {
        let mut remaining: Vec<_> = buckets
            .iter()
            .copied()
            .zip(slowest.iter().copied())
            .collect();
        while !remaining.is_empty() {
            let build = |(bucket, slowest): &_| self.tidy_command(*bucket, *slowest);
            let replies = self.for_each_bucket(&remaining, build).await?;
            let mut more = Vec::new();
            for ((bucket, slowest), reply) in remaining.into_iter().zip(replies) {
                let reply = array(reply)?;
                let [has_more, Value::Array(expired)] = &reply[..] else {
                    return Err(UNKNOWN);
                };
                self.sweep(bucket, expired).await?;
                if integer(has_more)? == 1 || expired.len() == SWEEP_BATCH {
                    more.push((bucket, slowest));
                }
            }
            remaining = more;
        }
        // namespaces do not belong to a bucket, so only the replica that maintains bucket 0 ends idle namespaces
        if buckets.contains(&0) {
            self.end_idle().await?;
        }
        self.purge(buckets).await
    }
}

impl RedisStore {
    /// Calls a script for each bucket, a few buckets at a time.
    pub(super) async fn for_each_bucket<B>(
        &self,
        buckets: &[B],
        build: impl Fn(&B) -> Command,
    ) -> Result<Vec<Value>, StoreError> {
        let mut replies = Vec::with_capacity(buckets.len());
        for buckets in buckets.chunks(BUCKET_BATCH) {
            let cmds = buckets.iter().map(&build);
            replies.extend(self.background.calls().read_many(cmds).await?);
        }
        Ok(replies)
    }

    fn tidy_command(&self, bucket: u16, slowest: Option<Position>) -> Command {
        let keys = self.names.bucket(bucket);
        let mut cmd = Script::Tidy.call(3);
        cmd.arg(&keys.log)
            .arg(&keys.horizon)
            .arg(&keys.archives)
            .arg(self.ahead())
            .arg(arguments::bounded_ms(self.retention.log))
            .arg(arguments::bounded_ms(self.retention.log_max()))
            .arg(slowest.map_or_else(String::new, |slowest| slowest.to_string()))
            .arg(arguments::bounded_ms(self.retention.archive))
            .arg(SWEEP_BATCH)
            .arg(TRIMMED_MAX);
        cmd
    }

    async fn sweep(&self, bucket: u16, members: &[Value]) -> Result<(), StoreError> {
        if members.is_empty() {
            return Ok(());
        }
        let keys = self.names.bucket(bucket);
        let (read, unreadable): (Vec<_>, Vec<_>) = members
            .iter()
            .map(|name| (name, text(name).and_then(archive_names::read)))
            .partition(|(_, archive)| archive.is_ok());
        let mut cmd = Script::Sweep.call(1 + 2 * read.len());
        cmd.arg(&keys.archives);
        for (id, life) in read.iter().flat_map(|(_, archive)| archive) {
            let last = keys.archive(id);
            let earlier = format!("{last}:{:016x}", life.0);
            cmd.arg(last).arg(earlier);
        }
        for (name, _) in read {
            cmd.arg(text(name)?);
        }
        let mut cmds = vec![cmd];
        // removes unreadable members, which would otherwise be found again in each pass
        for (name, _) in unreadable {
            let mut cmd = command("ZREM");
            cmd.arg(&keys.archives).arg(bytes(name)?);
            cmds.push(cmd);
        }
        self.background.calls().read_many(cmds).await.map(drop)
    }
}
