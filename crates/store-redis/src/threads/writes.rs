use redis::Value;

use super::arguments::WriteContext;
use super::replies::Step;
use super::{arguments, operations, replies};
use crate::scopes::replies::lacks_room;
use crate::shared::{StepOfResponse, member};
use crate::transport::{Calls, Command};
use crate::{RedisStore, Script};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Conditions, Operation, ThreadId, Write, Written, settles};
use threadkeep_store::{StoreError, WriteError};

const WRITE_KEYS: usize = 6;

impl RedisStore {
    pub(super) fn add_conditions(&self, cmd: &mut Command, conditions: &Conditions) {
        cmd.arg(self.ahead())
            .arg(arguments::encode_access(conditions.access))
            .arg(arguments::idempotency(conditions.idempotency))
            .arg(arguments::precondition(conditions.precondition))
            .arg(arguments::turn(conditions.turn));
    }

    pub(super) async fn write_context(
        &self,
        calls: &Calls<'_>,
    ) -> Result<WriteContext, StoreError> {
        let key = &self.names.watch_all;
        let ahead_ms = self.ahead();
        Ok(WriteContext {
            ahead_ms,
            retention: self.retention,
            logs_all: self.interest.logs_all(calls, key, ahead_ms).await?,
        })
    }

    pub(super) async fn write_by_list(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<(Option<Step>, Written), WriteError> {
        let is_state = |operation: &Operation| {
            !matches!(operation, Operation::Append(_) | Operation::Settle(_))
        };
        if !write.operations.iter().all(is_state) {
            return Box::pin(self.write_with_history(calls, id, write, context)).await;
        }
        let mut cmd = Script::Write.call(WRITE_KEYS);
        self.add_write_keys(&mut cmd, id);
        arguments::write(&mut cmd, write, context);
        let reply = calls.write(cmd).await?;
        replies::step_of_list(reply, write)
    }

    async fn write_with_history(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<(Option<Step>, Written), WriteError> {
        let reply = self.call_write(calls, id, write, context, None).await?;
        replies::step_of_list(reply, write)
    }

    /// Writes to a thread and ends a response. If `earlier` finds an earlier answer in the reply, returns that answer.
    pub(crate) async fn write_in_response<T>(
        &self,
        id: &ThreadId,
        write: &Write<'_>,
        end: &StepOfResponse<'_>,
        earlier: impl FnOnce(&Value) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, WriteError> {
        let calls = self.link.calls();
        let context = self.write_context(&calls).await?;
        let reply = self.call_write(&calls, id, write, &context, Some(end));
        let reply = reply.await?;
        let earlier = earlier(&reply)?;
        if earlier.is_none() {
            replies::written(reply, write)?;
        }
        Ok(earlier)
    }

    /// Writes state and history, and may end a response. If the script lacks room, makes room and calls it again.
    async fn call_write(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
        end: Option<&StepOfResponse<'_>>,
    ) -> Result<Value, StoreError> {
        let scope = ScopeId::Thread(*id);
        let keys = self.names.scope(&scope);
        let has_settles = settles(write.operations).next().is_some();
        let (script, extra_keys) = match end {
            Some(_) => (Script::WriteInResponse, 1),
            None if has_settles => (Script::WriteWithEffects, 1),
            None => (Script::WriteWithHistory, 0),
        };
        loop {
            let mut cmd = script.call(WRITE_KEYS + 3 + extra_keys);
            self.add_write_keys(&mut cmd, id);
            cmd.arg(&keys.scope).arg(&keys.history).arg(&keys.ids);
            if let Some(end) = end {
                cmd.arg(&end.key);
            } else if has_settles {
                cmd.arg(self.names.bucket_of(id).effects(id));
            }
            arguments::write_with_history(&mut cmd, write, context);
            if let Some(end) = end {
                end.add_counted_to(&mut cmd);
            } else if has_settles {
                operations::add_settles(&mut cmd, write.operations);
            }
            let reply = calls.write(cmd).await?;
            let Some(added) = lacks_room(&reply) else {
                return Ok(reply);
            };
            let room = write.history.max_bytes.saturating_sub(added);
            self.make_room(calls, &keys, room).await?;
        }
    }

    fn add_write_keys(&self, cmd: &mut Command, id: &ThreadId) {
        let bucket = self.names.bucket_of(id);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(bucket.watch(id));
    }

    /// Sets or pushes one value of an existing thread that is not watched. Uses a script with only one key, which is
    /// faster than the general write script. Returns `None` if the general script must do the write.
    pub(super) async fn write_fast(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<Option<(Step, Written)>, WriteError> {
        let Some(fast) = arguments::fast(write).filter(|_| !context.logs_all) else {
            return Ok(None);
        };
        let key = self.names.thread(id);
        // In a cluster, writes are not batched: few waiting writes belong to the same slot, and while that slot is
        // being migrated, a script with several keys is rejected.
        let mut cmd = fast.script.call_on(&key, !self.link.is_cluster());
        cmd.arg(arguments::policy(write, context))
            .arg(member::field(fast.key))
            .arg(&*fast.text);
        if fast.script == Script::Push {
            cmd.arg(fast.window.unwrap_or(0));
        }
        let reply = calls.write(cmd).await?;
        replies::step_of_fast(reply, write)
    }
}
