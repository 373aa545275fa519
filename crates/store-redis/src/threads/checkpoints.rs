use std::cmp::Reverse;

use async_trait::async_trait;
use redis::Value;

use super::{arguments, replies};
use crate::shared::{Meta, state, take};
use crate::transport::{Command, Fields, UNKNOWN, array, bytes, command, integer, text};
use crate::{RedisStore, Script, unless_access_refused, unless_refused};
use threadkeep_domain::{
    Access, CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointName, Conditions, ThreadId, Write,
    Written,
};
use threadkeep_store::{
    Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints, Found, StoreError,
    WriteError,
};

const CORRUPT: StoreError = StoreError::Corrupt("a checkpoint of an unknown form");
const HEAD_BYTES: usize = 20;

#[async_trait]
impl Checkpoints for RedisStore {
    async fn save_checkpoint(
        &self,
        id: &ThreadId,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
    ) -> Result<CheckpointSaved, WriteError> {
        let mut cmd = self.checkpoint_command(Script::SaveCheckpoint, id, conditions);
        cmd.arg(name.map_or("", CheckpointName::as_str))
            .arg(u64::from(CHECKPOINTS_MAX))
            .arg(CHECKPOINTS_MAX_BYTES);
        let reply = unless_refused(array(self.link.calls().write(cmd).await?)?)?;
        let [_, replayed, meta, number, created_ms] = &reply[..] else {
            return Err(UNKNOWN.into());
        };
        let meta = Meta::read(bytes(meta)?)?;
        Ok(CheckpointSaved {
            stamp: meta.stamp,
            head: CheckpointHead {
                number: integer(number)? as u32,
                name: name.cloned(),
                version: meta.stamp.version,
                size_bytes: meta.size_bytes,
                created_ms: integer(created_ms)?,
            },
            replayed: integer(replayed)? == 1,
        })
    }

    async fn list_checkpoints(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<CheckpointHead>>>, WriteError> {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::ReadCheckpoints.call(2);
        cmd.arg(bucket.thread(id))
            .arg(bucket.checkpoints(id))
            .arg(self.ahead())
            .arg(arguments::encode_access(access));
        match unless_access_refused(self.link.calls().read(cmd).await?)? {
            Value::Nil => Ok(None),
            reply => Ok(Some(heads(&array(reply)?)?)),
        }
    }

    async fn get_checkpoint(
        &self,
        id: &ThreadId,
        access: Access,
        number: u32,
    ) -> Result<Option<Found<Checkpoint>>, WriteError> {
        let Some(Found { stamp, content }) = self.list_checkpoints(id, access).await? else {
            return Ok(None);
        };
        let Some(head) = content.into_iter().find(|head| head.number == number) else {
            return Ok(None);
        };
        let mut fields = command("HGETALL");
        fields.arg(self.names.bucket_of(id).checkpoint(id, number));
        let fields = Fields::Read(self.link.calls().read(fields).await?);
        let checkpoint = state::assemble_content(&fields.pairs()?)?;
        // otherwise the checkpoint was deleted meanwhile, or its thread has ended
        let checkpoint = checkpoint.filter(|(meta, _)| meta.stamp.life == stamp.life);
        Ok(checkpoint.map(|(_, content)| Found {
            stamp,
            content: Checkpoint { head, content },
        }))
    }

    async fn restore_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        write: &Write<'_>,
    ) -> Result<Written, WriteError> {
        let calls = self.link.calls();
        let context = self.write_context(&calls).await?;
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::RestoreCheckpoint.call(4);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(bucket.checkpoints(id))
            .arg(&bucket.log)
            .arg(arguments::policy(write, &context))
            .arg(arguments::precondition(write.conditions.precondition))
            .arg(arguments::idempotency(write.conditions.idempotency))
            .arg(arguments::turn(write.conditions.turn))
            .arg(arguments::owner(write.owner, write.has_reservation))
            .arg(u64::from(number))
            .arg(if write.describe { "d" } else { "" })
            .arg(arguments::trace());
        let (_, written) = replies::written(calls.write(cmd).await?, write)?;
        Ok(written)
    }

    async fn delete_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        conditions: &Conditions,
    ) -> Result<CheckpointDeleted, WriteError> {
        let mut cmd = self.checkpoint_command(Script::DeleteCheckpoint, id, conditions);
        cmd.arg(u64::from(number));
        let reply = unless_refused(array(self.link.calls().write(cmd).await?)?)?;
        let [_, replayed, meta] = &reply[..] else {
            return Err(UNKNOWN.into());
        };
        Ok(CheckpointDeleted {
            stamp: Meta::read(bytes(meta)?)?.stamp,
            replayed: integer(replayed)? == 1,
        })
    }
}

impl RedisStore {
    fn checkpoint_command(
        &self,
        script: Script,
        id: &ThreadId,
        conditions: &Conditions,
    ) -> Command {
        let bucket = self.names.bucket_of(id);
        let mut cmd = script.call(3);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(bucket.checkpoints(id));
        self.add_conditions(&mut cmd, conditions);
        cmd
    }
}

/// Parses heads of checkpoints, newest first.
fn heads(reply: &[Value]) -> Result<Found<Vec<CheckpointHead>>, StoreError> {
    let [meta, Value::Array(fields)] = reply else {
        return Err(UNKNOWN);
    };
    let fields = fields.chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
    let mut heads = Vec::new();
    for (number, head) in fields {
        match text(number)? {
            "L" => {}
            number => heads.push(read_head(number, bytes(head)?)?),
        }
    }
    heads.sort_unstable_by_key(|head| Reverse(head.number));
    Ok(Found {
        stamp: Meta::read(bytes(meta)?)?.stamp,
        content: heads,
    })
}

pub(super) fn read_head(number: &str, packed: &[u8]) -> Result<CheckpointHead, StoreError> {
    let (mut head, name) = packed.split_at_checked(HEAD_BYTES).ok_or(CORRUPT)?;
    let name = str::from_utf8(name).map_err(|_| CORRUPT)?;
    let version = take(&mut head, 6);
    let size_bytes = take(&mut head, 4);
    // skips the bytes that count for the limit
    take(&mut head, 4);
    Ok(CheckpointHead {
        number: number.parse().map_err(|_| CORRUPT)?,
        name: match name {
            "" => None,
            name => Some(name.parse().map_err(|_| CORRUPT)?),
        },
        version,
        size_bytes,
        created_ms: take(&mut head, 6),
    })
}
