//! Exports, imports and forks whole threads. A fork that stays in its bucket and keeps the whole history is done by a
//! single script; any other fork reads an image and imports it. Each call has its own deadline, because the largest
//! threads take hundreds of calls.

mod checkpoints;
mod preparing;
mod reading;

use async_trait::async_trait;
use redis::Value;
use tokio::time::timeout;

use super::effects::record;
use super::{arguments, replies};
use crate::transport::{Calls, Command, UNKNOWN, array, command, text};
use crate::{RedisStore, Script, accepted};
use preparing::Prepared;
use reading::Reading;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Access, Fork, IfExists, Image, Import, Included, Json, Life, Origin, Refusal, ThreadId, Written,
};
use threadkeep_store::{Images, Imported, StoreError, WriteError, millis};

/// Maximum number of concurrent forks that hold a whole thread in memory. Limited, because any caller with a thread can
/// request a fork.
pub(crate) const CONCURRENT_FORKS_MAX: usize = 2;
/// Maximum number of history items that one script copies. Copying this many items takes about 5 ms.
const COPIED_ITEMS_MAX: u64 = 5_000;

#[async_trait]
impl Images for RedisStore {
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError> {
        self.read_image(id, &Reading::of(access)).await
    }

    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError> {
        let prepared = Prepared::new(self.names.bucket_of(id), import.image);
        // checks first whether Redis would accept the import, so that an image that Redis would reject is not sent
        let check = self.import_command(id, import, &prepared, "p");
        let checked = self.link.calls().read(check).await?;
        if let Some(imported) = imported(checked, import)? {
            return Ok(imported);
        }
        prepared.send(&self.link, import.image).await?;
        let create = self.import_command(id, import, &prepared, "");
        match imported(self.link.calls().write(create).await?, import)? {
            Some(imported) => Ok(imported),
            // the import took so long that the first staged keys expired
            None => Err(StoreError::Timeout(millis(self.link.timeout())).into()),
        }
    }

    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError> {
        // the script copies only whole histories
        if fork.until.is_none() && self.names.bucket_of(source).log == self.names.bucket_of(id).log
        {
            let copied = self.copy(source, id, fork).await?;
            if let Some(written) = copied {
                return Ok(written);
            }
        }
        self.fork_by_image(source, id, fork).await
    }
}

impl RedisStore {
    fn import_command(
        &self,
        id: &ThreadId,
        import: &Import<'_>,
        prepared: &Prepared,
        stage: &str,
    ) -> Command {
        let bucket = self.names.bucket_of(id);
        let thread = &import.image.thread;
        let mut packed = Vec::with_capacity(64);
        let mut put = |number, bytes| arguments::put(&mut packed, number, bytes);
        put(self.ahead(), 6);
        put(prepared.life.0, 8);
        put(arguments::ttl_ms(thread.ttl), 5);
        put(import.policy.max_age.map_or(0, arguments::bounded_ms), 6);
        put(arguments::whole_seconds(self.retention.grace), 4);
        put(arguments::archive_ms(&self.retention), 6);
        put(thread.stamp.version, 6);
        let state = &import.image.state;
        put(
            if state.is_empty() {
                0
            } else {
                state.size_bytes() - 1
            },
            4,
        );
        put(state.len().into(), 4);
        let is_fork = import.origin.is_some();
        put(if is_fork { 0 } else { thread.created_ms.max(1) }, 6);
        put(thread.updated_ms, 6);
        put(prepared.arrays, 4);
        put(prepared.fields, 4);
        let mut cmd = Script::Import.call(12);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(bucket.watch(id))
            .args(prepared.keys())
            .arg(packed)
            .arg(arguments::idempotency(import.idempotency))
            .arg(match import.if_exists {
                IfExists::Fail => "f",
                IfExists::Replace => "r",
                IfExists::Skip => "s",
            })
            .arg(arguments::turn(import.turn))
            .arg(thread.owner.as_ref().map_or_else(String::new, |owner| {
                arguments::tagged(owner, import.has_reservation)
            }))
            .arg(thread.metadata.as_str())
            .arg(import.origin.map_or_else(String::new, origin))
            .arg(&prepared.scope_meta)
            .arg(prepared.scope_fields)
            .arg(prepared.items)
            .arg(prepared.index_fields)
            .arg(&prepared.checkpoints)
            .arg(stage)
            .arg(arguments::trace())
            .arg(record::meta(&import.image.effects))
            .arg(prepared.effect_fields);
        cmd
    }

    /// Copies a thread within its bucket. Returns `None` if the history is too long for one script.
    async fn copy(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Option<Written>, WriteError> {
        let calls = self.link.calls();
        loop {
            let base = match fork.metadata {
                Some(_) => None,
                None => Some(self.copied_metadata(&calls, source, fork).await?),
            };
            let reply = calls.write(self.fork_command(source, id, fork, base.as_ref()));
            match copied(reply.await?, fork) {
                // another client has changed the metadata meanwhile
                Err(WriteError::Refused(Refusal::Changed)) => {}
                copied => return copied,
            }
        }
    }

    fn fork_command(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
        base: Option<&Json>,
    ) -> Command {
        let bucket = self.names.bucket_of(id);
        let scope = self.names.scope(&ScopeId::Thread(*source));
        let Included {
            state,
            scope: keys,
            history,
        } = fork.included;
        let parts = u64::from(state) | u64::from(keys) << 1 | u64::from(history) << 2;
        let mut packed = Vec::with_capacity(64);
        let mut put = |number, bytes| arguments::put(&mut packed, number, bytes);
        put(self.ahead(), 6);
        put(Life::random().0, 8);
        put(fork.ttl.map_or(0, arguments::ttl_ms), 5);
        put(fork.policy.max_age.map_or(0, arguments::bounded_ms), 6);
        put(arguments::whole_seconds(self.retention.grace), 4);
        put(arguments::archive_ms(&self.retention), 6);
        put(parts, 1);
        let empty = Json::empty_object();
        let metadata = fork.metadata.or(base).unwrap_or(&empty);
        let (before, after) = Origin::around_version(metadata, source);
        let mut cmd = Script::Fork.call(12);
        cmd.arg(bucket.thread(source))
            .arg(scope.scope)
            .arg(scope.history)
            .arg(scope.ids)
            .arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(bucket.watch(id))
            .arg(bucket.checkpoints(source))
            .arg(bucket.effects(source))
            .arg(packed)
            .arg(arguments::precondition(fork.conditions.precondition))
            .arg(arguments::idempotency(fork.conditions.idempotency))
            .arg(arguments::turn(fork.conditions.turn))
            .arg(arguments::encode_access(fork.conditions.access))
            .arg(before)
            .arg(after)
            .arg(base.map_or("", Json::as_str))
            .arg(match fork.owner {
                Some(owner) => arguments::tagged(owner, fork.has_reservation),
                None => arguments::reservation_flag(fork.has_reservation).to_owned(),
            })
            .arg(COPIED_ITEMS_MAX)
            .arg(
                fork.checkpoint
                    .map_or_else(String::new, |number| number.to_string()),
            )
            .arg(arguments::trace());
        cmd
    }

    async fn copied_metadata(
        &self,
        calls: &Calls<'_>,
        source: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Json, StoreError> {
        let bucket = self.names.bucket_of(source);
        let mut cmd = command("HGET");
        cmd.arg(match fork.checkpoint {
            Some(number) => bucket.checkpoint(source, number),
            None => bucket.thread(source),
        })
        .arg("D");
        match calls.read(cmd).await? {
            Value::Nil => Ok(Json::empty_object()),
            metadata => Ok(Json::from_compact(text(&metadata)?)),
        }
    }

    async fn fork_by_image(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError> {
        if fork.conditions.idempotency.is_some()
            && let Some(first) = self.recall(id, fork).await?
        {
            return Ok(first);
        }
        let waiting = timeout(self.link.timeout(), self.forking.acquire()).await;
        let _permit = waiting.map_err(|_| StoreError::Timeout(millis(self.link.timeout())))?;
        let image = self.read_image(source, &Reading::for_fork(fork)).await?;
        let image = image.ok_or(Refusal::ThreadNotFound)?;
        let (origin, image) = fork.of(source, image)?;
        let imported = self.import(id, &fork.import(origin, &image)).await?;
        Ok(imported.made()?)
    }

    async fn recall(&self, id: &ThreadId, fork: &Fork<'_>) -> Result<Option<Written>, WriteError> {
        let mut cmd = Script::Recall.call(1);
        cmd.arg(self.names.bucket_of(id).answers(id))
            .arg(self.ahead())
            .arg(arguments::idempotency(fork.conditions.idempotency));
        match self.link.calls().read(cmd).await? {
            Value::Nil => Ok(None),
            reply => copied(reply, fork),
        }
    }
}

/// Returns `None` if the import must continue.
fn imported(reply: Value, import: &Import<'_>) -> Result<Option<Imported>, WriteError> {
    let reply = accepted(array(reply)?, import.policy)?;
    match text(reply.first().ok_or(UNKNOWN)?)? {
        "W" => Ok(Some(Imported::Made(replies::described(&reply)?))),
        "S" => {
            let thread = replies::described(&reply)?.thread;
            Ok(Some(Imported::Skipped(thread.ok_or(UNKNOWN)?)))
        }
        _ => Ok(None),
    }
}

/// Returns `None` if the history is too long for one script.
fn copied(reply: Value, fork: &Fork<'_>) -> Result<Option<Written>, WriteError> {
    let reply = accepted(array(reply)?, fork.policy)?;
    match text(reply.first().ok_or(UNKNOWN)?)? {
        "W" => Ok(Some(replies::described(&reply)?)),
        _ => Ok(None),
    }
}

fn origin(origin: Origin) -> String {
    format!("{} {}", origin.id, origin.version)
}
