//! Reads of threads: from a copy in this process if Redis says that the thread is still the same, or else from Redis.

use std::time::Instant;

use bytes::Bytes;
use redis::Value;

use super::meta::{Meta, allowed, take};
use super::{arguments, member, replies, slices, state};
use crate::domain::{Access, Key, Refusal, Slice, Stamp, Thread, ThreadId, Write};
use crate::store::redis::RedisStore;
use crate::store::redis::log::store::time_ms;
use crate::store::redis::read_cache::{Form, Glimpse, Mark, Moved, ThreadCopy};
use crate::store::redis::refusals::unless_foreign;
use crate::store::redis::scripts::Script;
use crate::store::redis::transport::commands::{Command, command};
use crate::store::redis::transport::replies::{UNKNOWN, bytes, integer};
use crate::store::{Found, Part, Whole, WriteError};

/// Bytes of how long a thread lives from now, which follow its meta: see `look.lua`.
const LEFT_BYTES: usize = 5;

/// The answer of a copy.
enum Copied<T> {
    /// The content, or that there is no such thread.
    Known(Option<Found<T>>),
    /// Redis is to be asked for the content.
    Unknown,
}

impl RedisStore {
    /// The whole state.
    pub(in crate::store::redis) async fn read_state(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        let copied = self.copied(id, access, Form::Text, ThreadCopy::state);
        if let Copied::Known(found) = copied.await? {
            return Ok(found);
        }
        let found = self.fetch(id, access).await?;
        Ok(found.map(|found| Found {
            stamp: found.stamp,
            content: found.content.state,
        }))
    }

    /// State and metadata.
    pub(in crate::store::redis) async fn read_whole(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        let copied = self.copied(id, access, Form::Text, ThreadCopy::whole);
        match copied.await? {
            Copied::Known(found) => Ok(found),
            Copied::Unknown => self.fetch(id, access).await,
        }
    }

    /// Some values.
    pub(in crate::store::redis) async fn read_values(
        &self,
        id: &ThreadId,
        access: Access,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        let copied = self.copied(id, access, Form::Parsed, |copy| copy.values(keys));
        if let Copied::Known(found) = copied.await? {
            return Ok(found);
        }
        let mut cmd = self.reading(Script::ReadValues, id, access);
        for key in keys {
            cmd.arg(member::field(key));
        }
        let reply = unless_foreign(self.link.calls().read(cmd).await?)?;
        Ok(state::values(&reply)?)
    }

    /// A value, or a part of an array.
    pub(in crate::store::redis) async fn read_value(
        &self,
        id: &ThreadId,
        access: Access,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        let Some(slice) = slice else {
            let found = self.read_values(id, access, std::slice::from_ref(key));
            return Ok(found.await?.map(|found| Found {
                stamp: found.stamp,
                content: found
                    .content
                    .into_iter()
                    .next()
                    .flatten()
                    .map(|json| Part { json, total: None }),
            }));
        };
        let read = |copy: &mut ThreadCopy| copy.part(key, slice);
        if let Copied::Known(found) = self.copied(id, access, Form::Parsed, read).await? {
            return Ok(found);
        }
        let mut cmd = self.reading(Script::ReadSlice, id, access);
        cmd.arg(member::field(key));
        match slice {
            Slice::Tail(count) => cmd.arg("tail").arg(count).arg(-1),
            Slice::Range { offset, limit } => {
                let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
                cmd.arg("range").arg(offset).arg(limit)
            }
        };
        let reply = unless_foreign(self.link.calls().read(cmd).await?)?;
        Ok(slices::part(&reply, slice)?)
    }

    /// The keys.
    pub(in crate::store::redis) async fn read_keys(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        let copied = self.copied(id, access, Form::Parsed, ThreadCopy::keys);
        if let Copied::Known(found) = copied.await? {
            return Ok(found);
        }
        let cmd = self.reading(Script::ReadKeys, id, access);
        let reply = unless_foreign(self.link.calls().read(cmd).await?)?;
        Ok(state::keys(&reply)?)
    }

    /// Version and life.
    pub(in crate::store::redis) async fn read_stamp(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Stamp>, WriteError> {
        let cache = self.cache.as_ref();
        let glimpse = cache.and_then(|cache| cache.glimpse(id, Form::About, self.ahead()));
        if let Some(Glimpse {
            mark,
            is_moved: true,
        }) = glimpse
        {
            let looked = self.look(id, access, true).await?;
            if looked.is_some_and(|(meta, _)| self.mark(meta) == mark) {
                return Ok(Some(mark.meta.stamp));
            }
        }
        let looked = self.look(id, access, false).await?;
        Ok(looked.map(|(meta, moved)| {
            if let (Some(cache), Some(moved)) = (cache, moved) {
                cache.note_moved(id, &self.mark(meta), moved);
            }
            meta.stamp
        }))
    }

    /// All but the state.
    pub(in crate::store::redis) async fn read_thread(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Thread>, WriteError> {
        if let Some(thread) = self.thread_from_copy(id, access).await? {
            return Ok(Some(thread));
        }
        let cmd = self.reading(Script::ReadThread, id, access);
        let reply = unless_foreign(self.link.calls().read(cmd).await?)?;
        Ok(replies::thread(reply)?)
    }

    /// Drops the copy of a thread that has ended or moved.
    pub(in crate::store::redis) fn forget_copy(&self, id: &ThreadId) {
        if let Some(cache) = &self.cache {
            cache.forget(id);
        }
    }

    /// Does to the copy what a write has done to the thread.
    pub(in crate::store::redis) fn follow(&self, id: &ThreadId, write: &Write<'_>, meta: Meta) {
        if let Some(cache) = &self.cache {
            cache.follow(id, write, self.mark(meta));
        }
    }

    /// Reads the copy of a thread, once Redis has said that the thread is living, whose it is and which content it has.
    async fn copied<T>(
        &self,
        id: &ThreadId,
        access: Access,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Result<Copied<T>, WriteError> {
        let Some(cache) = &self.cache else {
            return Ok(Copied::Unknown);
        };
        let Some(glimpse) = cache.glimpse(id, form, self.ahead()) else {
            cache.count_miss();
            return Ok(Copied::Unknown);
        };
        let Some((meta, moved)) = self.look(id, access, glimpse.is_moved).await? else {
            cache.forget(id);
            return Ok(Copied::Known(None));
        };
        let content = cache.read(id, &self.mark(meta), moved, form, read);
        Ok(content.map_or(Copied::Unknown, |content| {
            Copied::Known(Some(Found {
                stamp: meta.stamp,
                content,
            }))
        }))
    }

    /// The thread from its copy, if that is still right, and its end was moved a moment ago; none if Redis is to be asked
    /// for more.
    async fn thread_from_copy(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Thread>, WriteError> {
        let calls = self.link.calls();
        let cache = self.cache.as_ref().filter(|_| !calls.is_of_several());
        let glimpse = cache.and_then(|cache| cache.glimpse(id, Form::About, self.ahead()));
        let (
            Some(cache),
            Some(Glimpse {
                mark,
                is_moved: true,
            }),
        ) = (cache, glimpse)
        else {
            return Ok(None);
        };
        let mut left = command("PTTL");
        left.arg(self.names.thread(id));
        // the meta last: as it is that of the copy, the times are of the same version
        let asked = [self.no_write(id), left, command("TIME"), self.meta_of(id)];
        let [_, left, time, packed] = calls.read_all(asked).await?;
        let meta = living(&packed, access)?.filter(|meta| self.mark(*meta) == mark);
        let (Some(meta), Ok(left_ms)) = (meta, integer(&left)) else {
            return Ok(None);
        };
        let about = |copy: &mut ThreadCopy| Some(copy.about());
        let Some((metadata, owner)) = cache.read(id, &mark, None, Form::About, about) else {
            return Ok(None);
        };
        let expires_ms = (time_ms(&time)? + left_ms).saturating_sub(meta.grace_ms);
        Ok(Some(meta.describe(metadata, expires_ms, owner)))
    }

    /// The meta of a living thread. Its end is moved unless it was moved already; that is returned if it lasts.
    async fn look(
        &self,
        id: &ThreadId,
        access: Access,
        is_moved: bool,
    ) -> Result<Option<(Meta, Option<Moved>)>, WriteError> {
        let calls = self.link.calls();
        if is_moved {
            let packed = if calls.is_of_several() {
                // a replica of a cluster answers nobody
                calls.read(self.meta_of(id)).await?
            } else {
                let [_, packed] = calls
                    .read_all([self.no_write(id), self.meta_of(id)])
                    .await?;
                packed
            };
            return Ok(living(&packed, access)?.map(|meta| (meta, None)));
        }
        let moved = self.moving();
        match unless_foreign(calls.read(self.reading(Script::Look, id, access)).await?)? {
            Value::Nil => Ok(None),
            reply => {
                let reply = bytes(&reply)?;
                let end = reply.len().checked_sub(LEFT_BYTES).ok_or(UNKNOWN)?;
                let (packed, mut left) = reply.split_at(end);
                let left_ms = take(&mut left, LEFT_BYTES);
                Ok(Some((Meta::read(packed)?, moved.lasting(left_ms))))
            }
        }
    }

    /// State and metadata from Redis, of which a copy is kept.
    async fn fetch(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        let touch = self.reading(Script::Touch, id, access);
        let mut fields = command("HGETALL");
        fields.arg(self.names.thread(id));
        let (moved, epoch) = (self.moving(), self.link.epoch());
        let (left_ms, fields) = self.link.calls().read_fields(touch, fields).await?;
        let left_ms = match left_ms {
            0 => return Ok(None),
            -1 => return Err(Refusal::OwnerRequired.into()),
            -2 => return Err(Refusal::NotTheOwner.into()),
            left_ms => u64::try_from(left_ms).map_err(|_| UNKNOWN)?,
        };
        let fields = fields.pairs()?;
        let Some((meta, whole)) = state::assemble_whole(&fields)? else {
            return Ok(None);
        };
        if let Some(cache) = &self.cache {
            let (mark, owner) = (Mark { meta, epoch }, state::owner(&fields)?);
            let moved = moved.lasting(left_ms);
            cache.keep(*id, ThreadCopy::new(mark, whole.clone(), owner, moved));
        }
        Ok(Some(Found {
            stamp: meta.stamp,
            content: whole,
        }))
    }

    /// A command that changes nothing, but that only a server that takes writes accepts. One that has become a replica may
    /// lag behind.
    fn no_write(&self, id: &ThreadId) -> Command {
        let mut cmd = command("HDEL");
        cmd.arg(self.names.thread(id)).arg("");
        cmd
    }

    fn meta_of(&self, id: &ThreadId) -> Command {
        let mut cmd = command("HGET");
        cmd.arg(self.names.thread(id)).arg("M");
        cmd
    }

    fn mark(&self, meta: Meta) -> Mark {
        Mark {
            meta,
            epoch: self.link.epoch(),
        }
    }

    /// An end that is moved now.
    fn moving(&self) -> Moved {
        Moved {
            at: Instant::now(),
            ahead_ms: self.ahead(),
        }
    }

    /// A script that reads a thread's hash alone.
    pub(super) fn reading(&self, script: Script, id: &ThreadId, access: Access) -> Command {
        let mut cmd = script.call(1);
        cmd.arg(self.names.thread(id))
            .arg(self.ahead())
            .arg(arguments::who(access));
        cmd
    }
}

/// The meta of a thread that was living a second ago.
fn living(packed: &Value, access: Access) -> Result<Option<Meta>, WriteError> {
    match packed {
        Value::Nil => Ok(None),
        packed => Ok(Some(allowed(bytes(packed)?, access)?)),
    }
}
