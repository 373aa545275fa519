use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;

use super::reads::Copied;
use super::{arguments, replies, slices};
use crate::read_cache::{Form, ThreadCopy};
use crate::shared::{member, state};
use crate::transport::command;
use crate::{RedisStore, Script, bucket_number, startup, unless_access_refused};
use threadkeep_domain::{Key, Slice, Stamp, Thread, ThreadId, Write, Written};
use threadkeep_store::{
    CacheUse, Destroy, Destroyed, Found, Links, Part, Reader, Rotate, Rotated, StateBody, Store,
    StoreError, Whole, WriteError,
};

/// Lifetime of the readiness probe's key. Each probe renews it.
const PROBE_MS: u64 = 60_000;

#[async_trait]
impl Store for RedisStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.text(id, reader, ThreadCopy::state, |content| content.state)
            .await
    }

    async fn get_state_body(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<StateBody>>, WriteError> {
        let fetched = |content: Whole| StateBody::Text(content.state);
        self.text(id, reader, ThreadCopy::state_body, fetched).await
    }

    fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
        if let Some(cache) = &self.cache {
            cache.keep_compressed(id, text, gzip);
        }
    }

    async fn get_content(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.text(id, reader, ThreadCopy::whole, |content| content)
            .await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        let copied = self.read_copy(id, reader, Form::Parsed, |copy| copy.values(keys));
        if let Copied::Known(found) = copied.await? {
            return Ok(found);
        }
        let mut cmd = self.read_command(Script::ReadValues, id, reader);
        for key in keys {
            cmd.arg(member::field(key));
        }
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(state::values(&reply)?)
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        let Some(slice) = slice else {
            let found = self.get_values(id, reader, std::slice::from_ref(key));
            let part = |values: Vec<_>| {
                let json = values.into_iter().next().flatten();
                json.map(|json| Part { json, total: None })
            };
            return Ok(found.await?.map(|found| found.map(part)));
        };
        let read = |copy: &mut ThreadCopy| copy.part(key, slice);
        if let Copied::Known(found) = self.read_copy(id, reader, Form::Parsed, read).await? {
            return Ok(found);
        }
        let mut cmd = self.read_command(Script::ReadSlice, id, reader);
        cmd.arg(member::field(key));
        match slice {
            Slice::Tail(count) => cmd.arg("tail").arg(count).arg(-1),
            Slice::Range { offset, limit } => {
                let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
                cmd.arg("range").arg(offset).arg(limit)
            }
        };
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(slices::part(&reply, slice)?)
    }

    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError> {
        self.stamp(id, reader).await
    }

    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        self.key(id, reader, key).await
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        let copied = self.read_copy(id, reader, Form::Parsed, ThreadCopy::keys);
        if let Copied::Known(found) = copied.await? {
            return Ok(found);
        }
        let cmd = self.read_command(Script::ReadKeys, id, reader);
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(state::keys(&reply)?)
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        if let Some(thread) = self.thread_from_copy(id, reader).await? {
            return Ok(Some(thread));
        }
        let moved = self.moving(reader);
        let cmd = self.read_command(Script::ReadThread, id, reader);
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        if let Some((meta, left_ms)) = replies::remaining_lifetime(&reply)? {
            self.note_moved(id, meta, moved.and_then(|moved| moved.lasting(left_ms)));
        }
        Ok(replies::thread(reply)?)
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let calls = self.link.calls();
        let context = &self.write_context(&calls).await?;
        let (step, written) = match self.write_fast(&calls, id, write, context).await? {
            Some((step, written)) => (Some(step), written),
            None => self.write_by_list(&calls, id, write, context).await?,
        };
        if let Some(step) = step {
            self.follow(id, write, &step);
        }
        Ok(written)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::Destroy.call(5);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(self.ahead())
            .arg(arguments::precondition(destroy.conditions.precondition))
            .arg(arguments::idempotency(destroy.conditions.idempotency))
            .arg(arguments::bounded_ms(destroy.tombstone))
            .arg(arguments::archive_ms(&self.retention))
            .arg(arguments::turn(destroy.conditions.turn))
            .arg(arguments::encode_access(destroy.conditions.access))
            .arg(arguments::trace());
        let reply = self.link.calls().write(cmd).await;
        self.forget_copy(id);
        replies::destroyed(reply?)
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        // the new id must be in the same cluster slot, because one script moves all the data
        let number = bucket_number(id);
        let to = ThreadId::random_where(|to| bucket_number(to) == number);
        let (bucket, conditions) = (self.names.bucket_of(id), &rotate.conditions);
        let mut cmd = Script::Rotate.call(5);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.thread(&to))
            .arg(bucket.answers(&to));
        self.add_conditions(&mut cmd, conditions);
        cmd.arg(arguments::bounded_ms(rotate.tombstone))
            .arg(arguments::archive_ms(&self.retention))
            .arg(arguments::trace());
        let reply = self.link.calls().write(cmd).await;
        self.forget_copy(id);
        replies::rotated(reply?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let probes = self.names.probes().map(|key| {
            let mut cmd = command("SET");
            cmd.arg(key).arg("").arg("PX").arg(PROBE_MS);
            cmd
        });
        self.administration.calls().probe(probes).await?;
        startup::check_no_eviction(&self.administration).await
    }

    fn links(&self) -> Option<Links> {
        Some(Links {
            unconfirmed: self.unconfirmed.load(Ordering::Relaxed),
            ..self.link.links()
        })
    }

    fn cache_use(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    fn unreadable(&self) -> u64 {
        self.unreadable.skipped()
    }
}
