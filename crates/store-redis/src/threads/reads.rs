//! Reads threads: from a copy in this process if Redis confirms that the thread is unchanged, otherwise from Redis.

use std::time::Instant;

use redis::Value;

use super::arguments;
use super::replies::Step;
use crate::read_cache::{ContentId, Form, Moved, ThreadCopy};
use crate::shared::{Meta, member, state, take};
use crate::transport::{Command, UNKNOWN, bytes, command, integer, time_ms};
use crate::{RedisStore, Script, unless_access_refused};
use threadkeep_domain::{Access, Key, Refusal, Stamp, Thread, ThreadId, Write};
use threadkeep_store::{Found, Reader, Whole, WriteError};

/// Sizes of two values that follow the meta in a reply of `look.lua`: the remaining lifetime, and a flag that shows
/// whether the field exists.
const REMAINING_BYTES: usize = 5;
const FIELD_FLAG_BYTES: usize = 1;

struct Look {
    meta: Meta,
    moved: Option<Moved>,
    has_field: bool,
}

pub(super) enum Copied<T> {
    Known(Option<Found<T>>),
    Unknown,
}

impl RedisStore {
    pub(super) fn forget_copy(&self, id: &ThreadId) {
        if let Some(cache) = &self.cache {
            cache.forget(id);
        }
    }

    pub(super) fn follow(&self, id: &ThreadId, write: &Write<'_>, step: &Step) {
        if let Some(cache) = &self.cache {
            cache.follow(id, write, self.content_id(step.meta), step.written_ms);
        }
    }

    /// Reads the cached copy of a thread, but only after Redis has confirmed that the copy is current.
    pub(super) async fn read_copy<T>(
        &self,
        id: &ThreadId,
        reader: Reader,
        form: Form,
        read: impl FnOnce(&mut ThreadCopy) -> Option<T>,
    ) -> Result<Copied<T>, WriteError> {
        let Some(cache) = &self.cache else {
            return Ok(Copied::Unknown);
        };
        let Some(info) = cache.copy_info(id, form, self.ahead()) else {
            cache.count_miss();
            return Ok(Copied::Unknown);
        };
        let looked = match info.is_moved {
            true => self
                .read_meta(id, reader.access)
                .await?
                .map(|meta| (meta, None)),
            false => {
                let look = self.touch_meta(id, reader, None).await?;
                look.map(|look| (look.meta, look.moved))
            }
        };
        let Some((meta, moved)) = looked else {
            cache.forget(id);
            return Ok(Copied::Known(None));
        };
        let content = cache.read(id, &self.content_id(meta), moved, form, read);
        Ok(content.map_or(Copied::Unknown, |content| {
            Copied::Known(Some(Found {
                stamp: meta.stamp,
                content,
            }))
        }))
    }

    pub(super) async fn text<T>(
        &self,
        id: &ThreadId,
        reader: Reader,
        copied: impl FnOnce(&mut ThreadCopy) -> Option<T>,
        fetched: impl FnOnce(Whole) -> T,
    ) -> Result<Option<Found<T>>, WriteError> {
        match self.read_copy(id, reader, Form::Text, copied).await? {
            Copied::Known(found) => Ok(found),
            Copied::Unknown => {
                let found = self.fetch(id, reader).await?;
                Ok(found.map(|found| found.map(fetched)))
            }
        }
    }

    /// Reads the version and the life of a thread. Also extends the lifetime unless it was extended a moment ago.
    pub(super) async fn stamp(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Stamp>, WriteError> {
        if let Some(content_id) = self.just_moved(id) {
            let meta = self.read_meta(id, reader.access).await?;
            if meta.is_some_and(|meta| self.content_id(meta) == content_id) {
                return Ok(Some(content_id.meta.stamp));
            }
        }
        let look = self.touch_meta(id, reader, None).await?;
        Ok(look.map(|look| {
            self.note_moved(id, look.meta, look.moved);
            look.meta.stamp
        }))
    }

    pub(super) async fn key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        let has = |copy: &mut ThreadCopy| copy.has_key(key);
        if let Copied::Known(found) = self.read_copy(id, reader, Form::Parsed, has).await? {
            return Ok(found);
        }
        let look = self.touch_meta(id, reader, Some(key)).await?;
        Ok(look.map(|look| {
            self.note_moved(id, look.meta, look.moved);
            Found {
                stamp: look.meta.stamp,
                content: look.has_field,
            }
        }))
    }

    pub(super) fn note_moved(&self, id: &ThreadId, meta: Meta, moved: Option<Moved>) {
        if let (Some(cache), Some(moved)) = (&self.cache, moved) {
            cache.note_moved(id, &self.content_id(meta), moved);
        }
    }

    fn just_moved(&self, id: &ThreadId) -> Option<ContentId> {
        let info = self
            .cache
            .as_ref()?
            .copy_info(id, Form::About, self.ahead())?;
        info.is_moved.then_some(info.content_id)
    }

    /// Returns the thread from its cached copy if the copy is current and the lifetime was extended a moment ago.
    /// Otherwise returns `None`, and the caller must read the thread from Redis.
    pub(super) async fn thread_from_copy(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        let calls = self.link.calls();
        let moved = self.just_moved(id).filter(|_| !calls.has_several_servers());
        let (Some(cache), Some(content_id)) = (&self.cache, moved) else {
            return Ok(None);
        };
        let mut ttl = command("PTTL");
        ttl.arg(self.names.thread(id));
        // reads the version last: if it matches the cached copy, the times that were read before belong to this version
        let cmds = [ttl.guarded(), command("TIME"), self.meta_of(id)];
        let [ttl, time, packed] = calls.read_all(cmds).await?;
        let meta =
            living(&packed, reader.access)?.filter(|meta| self.content_id(*meta) == content_id);
        let (Some(meta), Ok(left_ms)) = (meta, integer(&ttl)) else {
            return Ok(None);
        };
        let about = |copy: &mut ThreadCopy| Some(copy.about());
        let Some((metadata, owner)) = cache.read(id, &content_id, None, Form::About, about) else {
            return Ok(None);
        };
        let expires_ms = (time_ms(&time)? + left_ms).saturating_sub(meta.grace_ms);
        Ok(Some(meta.describe(metadata, expires_ms, owner)))
    }

    /// Reads the `Meta` record of a thread without extending the lifetime, because it was extended a moment ago.
    /// Returns `None` if the thread does not exist.
    async fn read_meta(&self, id: &ThreadId, access: Access) -> Result<Option<Meta>, WriteError> {
        let calls = self.link.calls();
        let meta = match calls.has_several_servers() {
            // in a cluster, replicas redirect reads, so no guard is needed
            true => self.meta_of(id),
            false => self.meta_of(id).guarded(),
        };
        living(&calls.read(meta).await?, access)
    }

    async fn touch_meta(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: Option<&Key>,
    ) -> Result<Option<Look>, WriteError> {
        let moved = self.moving(reader);
        let mut look = self.read_command(Script::Look, id, reader);
        if let Some(key) = key {
            look.arg(member::field(key));
        }
        match unless_access_refused(self.link.calls().read(look).await?)? {
            Value::Nil => Ok(None),
            reply => {
                let reply = bytes(&reply)?;
                let end = reply.len().checked_sub(REMAINING_BYTES + FIELD_FLAG_BYTES);
                let (packed, mut rest) = reply.split_at(end.ok_or(UNKNOWN)?);
                let left_ms = take(&mut rest, REMAINING_BYTES);
                Ok(Some(Look {
                    meta: Meta::read(packed)?,
                    moved: moved.and_then(|moved| moved.lasting(left_ms)),
                    has_field: take(&mut rest, FIELD_FLAG_BYTES) == 1,
                }))
            }
        }
    }

    pub(super) async fn fetch(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        let touch = self.read_command(Script::Touch, id, reader);
        let mut fields = command("HGETALL");
        fields.arg(self.names.thread(id));
        let (moved, epoch) = (self.moving(reader), self.link.epoch());
        let (left_ms, fields) = self.link.calls().read_fields(touch, fields).await?;
        let left_ms = match left_ms {
            0 => return Ok(None),
            -1 => return Err(Refusal::OwnerRequired.into()),
            -2 => return Err(Refusal::NotTheOwner.into()),
            left_ms => u64::try_from(left_ms).map_err(|_| UNKNOWN)?,
        };
        let fields = fields.pairs()?;
        let Some((meta, content)) = state::assemble_content(&fields)? else {
            return Ok(None);
        };
        if let Some(cache) = &self.cache {
            let (content_id, owner) = (ContentId { meta, epoch }, state::owner(&fields)?);
            let moved = moved.and_then(|moved| moved.lasting(left_ms));
            cache.keep(
                *id,
                ThreadCopy::new(content_id, content.clone(), owner, moved),
            );
        }
        Ok(Some(Found {
            stamp: meta.stamp,
            content,
        }))
    }

    fn meta_of(&self, id: &ThreadId) -> Command {
        let mut cmd = command("HGET");
        cmd.arg(self.names.thread(id)).arg("M");
        cmd
    }

    fn content_id(&self, meta: Meta) -> ContentId {
        ContentId {
            meta,
            epoch: self.link.epoch(),
        }
    }

    pub(super) fn moving(&self, reader: Reader) -> Option<Moved> {
        reader.touch.then(|| Moved {
            at: Instant::now(),
            ahead_ms: self.ahead(),
        })
    }

    pub(super) fn read_command(&self, script: Script, id: &ThreadId, reader: Reader) -> Command {
        let mut cmd = self.on_thread(script, id, reader.access);
        cmd.arg(if reader.touch { "" } else { "g" });
        cmd
    }

    pub(super) fn on_thread(&self, script: Script, id: &ThreadId, access: Access) -> Command {
        let mut cmd = script.call(1);
        cmd.arg(self.names.thread(id))
            .arg(self.ahead())
            .arg(arguments::encode_access(access));
        cmd
    }
}

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
