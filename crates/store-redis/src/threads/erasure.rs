use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::Value;
use tokio::time::sleep;

use super::arguments;
use crate::shared::archive_names;
use crate::transport::{Command, UNKNOWN, array, command, integer, is_done, text};
use crate::{Bucket, RedisStore, Script, bucket_number};
use threadkeep_domain::{Life, OwnerTag};
use threadkeep_store::{Erased, ErasedLife, Erasure, StoreError, ThreadOrder, millis};

/// Maximum number of commands sent together. Redis does not serve other clients until it has run all of these commands.
const COMMAND_BATCH: usize = 8;
const IDS_MAX: u64 = 12;
const LIVES_MAX: u64 = 400;
/// Limits for one script: the number of events to check, and the total size of the key names in those events.
const EVENTS_MAX: u64 = 128;
const EVENT_BYTES_MAX: u64 = 256 * 1_024;
/// Lifetime of an unfinished copy of a log. While an unfinished copy exists, another copy cannot begin.
const COPY_TTL: Duration = Duration::from_secs(2);
const BUSY_PAUSE: Duration = Duration::from_millis(50);

#[async_trait]
impl Erasure for RedisStore {
    async fn erase_owned(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Result<Option<Erased>, StoreError> {
        let lists = |bucket: &Bucket| {
            let threads = bucket.owned(owner, ThreadOrder::Created);
            vec![threads, bucket.ended(owner)]
        };
        let buckets = self.buckets_with(lists).await?;
        if buckets.is_empty() {
            return Ok(None);
        }
        let mut erased = Erased::default();
        let cmds = buckets.iter().map(|bucket| {
            let mut cmd = Script::EraseOwned.call(5);
            cmd.args(lists(bucket))
                .arg(bucket.erased(owner))
                .arg(&bucket.log)
                .arg(&bucket.archives)
                .arg(self.ahead())
                .arg(owner.to_string())
                .arg(arguments::bounded_ms(tombstone))
                .arg(arguments::archive_ms(&self.retention))
                .arg(IDS_MAX);
            cmd
        });
        for reply in self.run_in_batches(cmds.collect()).await? {
            let [threads, archives] = &array(reply)?[..] else {
                return Err(UNKNOWN);
            };
            erased.threads += integer(threads)?;
            erased.archives += integer(archives)?;
        }
        Ok(Some(erased))
    }

    async fn erased_lives(&self, owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError> {
        let buckets = self
            .buckets_with(|bucket| vec![bucket.erased(owner)])
            .await?;
        let cmds = buckets.iter().map(|bucket| {
            let mut cmd = command("ZRANGE");
            cmd.arg(bucket.erased(owner))
                .arg(0)
                .arg(LIVES_MAX - 1)
                .arg("WITHSCORES");
            cmd
        });
        if buckets.is_empty() {
            self.confirm_all().await?;
        }
        let mut lives = Vec::new();
        for reply in self.run_in_batches(cmds.collect()).await? {
            for pair in array(reply)? {
                lives.push(life(pair)?);
            }
        }
        Ok(lives)
    }

    async fn purge_log(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError> {
        let mut starts = BTreeMap::new();
        for life in lives {
            let start = starts.entry(bucket_number(&life.id)).or_insert(u64::MAX);
            *start = life.logged_from_ms().min(*start);
        }
        let buckets: Vec<_> = starts.into_iter().collect();
        for batch in buckets.chunks(COMMAND_BATCH) {
            let purged = batch.iter().map(|(bucket, from_ms)| {
                let bucket = &self.names.buckets()[*bucket];
                self.purge_bucket(bucket, owner, *from_ms)
            });
            try_join_all(purged).await?;
        }
        Ok(())
    }

    async fn forget_lives(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError> {
        let mut by_bucket: BTreeMap<usize, Command> = BTreeMap::new();
        for life in lives {
            let number = bucket_number(&life.id);
            let cmd = by_bucket.entry(number).or_insert_with(|| {
                let mut cmd = command("ZREM");
                cmd.arg(self.names.buckets()[number].erased(owner));
                cmd
            });
            cmd.arg(name(life));
        }
        let cmds = by_bucket.into_values().collect();
        self.run_in_batches(cmds).await.map(drop)
    }
}

impl RedisStore {
    async fn buckets_with(
        &self,
        keys: impl Fn(&Bucket) -> Vec<String>,
    ) -> Result<Vec<&Bucket>, StoreError> {
        let buckets = self.names.buckets();
        let cmds = buckets.iter().map(|bucket| {
            let mut cmd = command("EXISTS");
            cmd.args(keys(bucket));
            cmd
        });
        let counts = self.background.calls().read_many(cmds).await?;
        let mut matching = Vec::new();
        for (bucket, count) in buckets.iter().zip(counts) {
            if integer(&count)? > 0 {
                matching.push(bucket);
            }
        }
        Ok(matching)
    }

    /// Removes the events of an owner's erased lives from a log. Copies the log only if it may contain such events.
    async fn purge_bucket(
        &self,
        bucket: &Bucket,
        owner: OwnerTag,
        from_ms: u64,
    ) -> Result<(), StoreError> {
        if !self.has_erased(bucket, owner, from_ms).await? {
            return Ok(());
        }
        let name = hex::encode(rand::random::<[u8; 8]>());
        let mut from = "-".to_owned();
        loop {
            let mut cmd = Script::Rewrite.call(4);
            cmd.arg(&bucket.log)
                .args(&bucket.log_copy)
                .arg(bucket.erased(owner))
                .arg(&name)
                .arg(&from)
                .arg(EVENTS_MAX)
                .arg(EVENT_BYTES_MAX)
                .arg(millis(COPY_TTL));
            match self.background.calls().read(cmd).await? {
                Value::Int(1) => return Ok(()),
                Value::Int(0) => {
                    from = "-".to_owned();
                    sleep(BUSY_PAUSE).await;
                }
                next => from = text(&next)?.to_owned(),
            }
        }
    }

    async fn has_erased(
        &self,
        bucket: &Bucket,
        owner: OwnerTag,
        from_ms: u64,
    ) -> Result<bool, StoreError> {
        let mut from = from_ms.to_string();
        loop {
            let mut cmd = Script::FindErased.call(3);
            cmd.arg(&bucket.log)
                .arg(bucket.erased(owner))
                .arg(&bucket.horizon)
                .arg(&from)
                .arg(EVENTS_MAX)
                .arg(EVENT_BYTES_MAX);
            let reply = array(self.background.calls().read(cmd).await?)?;
            let [found, next @ ..] = &reply[..] else {
                return Err(UNKNOWN);
            };
            if is_done(found)? {
                return Ok(true);
            }
            match next {
                [] | [Value::Nil] => return Ok(false),
                [next, ..] => from = text(next)?.to_owned(),
            }
        }
    }

    async fn run_in_batches(&self, cmds: Vec<Command>) -> Result<Vec<Value>, StoreError> {
        let mut replies = Vec::with_capacity(cmds.len());
        let mut cmds = cmds.into_iter().peekable();
        while cmds.peek().is_some() {
            let batch = cmds.by_ref().take(COMMAND_BATCH);
            replies.extend(self.background.calls().read_many(batch).await?);
        }
        Ok(replies)
    }
}

/// Returns the member that represents a life in a set: the thread id and the life number, which is 0 if unknown.
fn name(life: &ErasedLife) -> String {
    format!("{}-{:016x}", life.id, life.life.unwrap_or_default().0)
}

fn life(pair: Value) -> Result<ErasedLife, StoreError> {
    let [name, Value::Double(created_ms)] = &array(pair)?[..] else {
        return Err(UNKNOWN);
    };
    let (id, life) = archive_names::read(text(name)?)?;
    let is_known = life != Life::default();
    Ok(ErasedLife {
        id,
        life: is_known.then_some(life),
        created_ms: if is_known { *created_ms as u64 } else { 0 },
    })
}
