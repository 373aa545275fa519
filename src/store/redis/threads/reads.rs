//! Reads of threads: from a copy in this process if Redis says that the thread is still the same, or else from Redis.

use std::time::Instant;

use redis::Value;

use super::meta::{Meta, take};
use super::{arguments, state};
use crate::domain::{Access, Refusal, Stamp, Thread, ThreadId, Write};
use crate::store::redis::RedisStore;
use crate::store::redis::log::store::time_ms;
use crate::store::redis::read_cache::{Form, Mark, Moved, ThreadCopy};
use crate::store::redis::refusals::unless_foreign;
use crate::store::redis::scripts::Script;
use crate::store::redis::transport::commands::{Command, command};
use crate::store::redis::transport::replies::{UNKNOWN, bytes, integer};
use crate::store::{Found, Whole, WriteError};

/// Bytes of how long a thread lives from now, which follow its meta: see `look.lua`.
const LEFT_BYTES: usize = 5;

/// The answer of a copy.
pub(super) enum Copied<T> {
    /// The content, or that there is no such thread.
    Known(Option<Found<T>>),
    /// Redis is to be asked for the content.
    Unknown,
}

impl RedisStore {
    /// Drops the copy of a thread that has ended or moved.
    pub(super) fn forget_copy(&self, id: &ThreadId) {
        if let Some(cache) = &self.cache {
            cache.forget(id);
        }
    }

    /// Does to the copy what a write has done to the thread.
    pub(super) fn follow(&self, id: &ThreadId, write: &Write<'_>, meta: Meta) {
        if let Some(cache) = &self.cache {
            cache.follow(id, write, self.mark(meta));
        }
    }

    /// Reads the copy of a thread, once Redis has said that the thread is living, whose it is and which content it has.
    pub(super) async fn copied<T>(
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
        let looked = match glimpse.is_moved {
            true => self.glance(id, access).await?.map(|meta| (meta, None)),
            false => self.look(id, access).await?,
        };
        let Some((meta, moved)) = looked else {
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

    /// Version and life; the end is moved unless it was moved a moment ago.
    pub(super) async fn stamp(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Stamp>, WriteError> {
        if let Some(mark) = self.just_moved(id) {
            let meta = self.glance(id, access).await?;
            if meta.is_some_and(|meta| self.mark(meta) == mark) {
                return Ok(Some(mark.meta.stamp));
            }
        }
        let looked = self.look(id, access).await?;
        Ok(looked.map(|(meta, moved)| {
            if let (Some(cache), Some(moved)) = (&self.cache, moved) {
                cache.note_moved(id, &self.mark(meta), moved);
            }
            meta.stamp
        }))
    }

    /// The mark of a copy of a thread whose end was moved so short a time ago that it need not be moved.
    fn just_moved(&self, id: &ThreadId) -> Option<Mark> {
        let glimpse = self
            .cache
            .as_ref()?
            .glimpse(id, Form::About, self.ahead())?;
        glimpse.is_moved.then_some(glimpse.mark)
    }

    /// The thread from its copy, if that is still right, and its end was moved a moment ago; none if Redis is to be asked
    /// for more.
    pub(super) async fn thread_from_copy(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Thread>, WriteError> {
        let calls = self.link.calls();
        let moved = self.just_moved(id).filter(|_| !calls.is_of_several());
        let (Some(cache), Some(mark)) = (&self.cache, moved) else {
            return Ok(None);
        };
        let mut left = command("PTTL");
        left.arg(self.names.thread(id));
        // the meta last: as it is that of the copy, the times are of the same version
        let asked = [left.guarded(), command("TIME"), self.meta_of(id)];
        let [left, time, packed] = calls.read_all(asked).await?;
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

    /// The meta of a thread whose end was moved a moment ago, to long enough from then; none if there is no thread any more.
    async fn glance(&self, id: &ThreadId, access: Access) -> Result<Option<Meta>, WriteError> {
        let calls = self.link.calls();
        let meta = match calls.is_of_several() {
            // a replica of a cluster answers nobody
            true => self.meta_of(id),
            false => self.meta_of(id).guarded(),
        };
        living(&calls.read(meta).await?, access)
    }

    /// The meta of a living thread, whose end is moved; that is returned if it lasts.
    async fn look(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<(Meta, Option<Moved>)>, WriteError> {
        let moved = self.moving();
        let look = self.reading(Script::Look, id, access);
        match unless_foreign(self.link.calls().read(look).await?)? {
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
    pub(super) async fn fetch(
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
        packed => {
            let meta = Meta::read(bytes(packed)?)?;
            meta.check(access)?;
            Ok(Some(meta))
        }
    }
}
