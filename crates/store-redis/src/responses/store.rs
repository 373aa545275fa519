use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;

use super::replies::{Meta, begun, done, earlier, event, ids, last_response, view};
use crate::scopes::replies::written;
use crate::shared::{Step, StepOfResponse, bounded_ms, encode_access};
use crate::transport::{Command, array, bytes, command, is_done};
use crate::{RedisStore, Script};
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_domain::{Refusal, ResponseId, ThreadId, TurnToken};
use threadkeep_store::OPEN_RESPONSE_MAX;
use threadkeep_store::{
    Answered, BeginResponse, Begun, EndResponse, EndWrite, Floor, JournalEntry, Journaled,
    ResponseEvents, ResponseView, Responses, StoreError, WriteError,
};

#[async_trait]
impl Responses for RedisStore {
    fn bucket_of_scope(&self, scope: &ScopeId) -> u8 {
        self.names.bucket_of_scope(scope)
    }

    async fn begin_response(
        &self,
        id: &ResponseId,
        begin: &BeginResponse<'_>,
    ) -> Result<Begun, WriteError> {
        // a response is stored in the slot of its scope, so an id in another slot belongs to a response in a different
        // scope
        if id.bucket() != self.names.bucket_of_scope(begin.scope) {
            return Err(Refusal::IdempotencyKeyReused.into());
        }
        let takes_scope = begin.floor == Floor::Taken && begin.scope.thread().is_none();
        let mut cmd = match takes_scope {
            true => self.scope_response_command(Script::BeginResponse, id, begin.scope),
            false => self.response_command(Script::BeginResponse, id, Some(begin.scope)),
        };
        cmd.arg(self.ahead())
            .arg(encode_access(begin.access))
            .arg(begin.token.0)
            .arg(bounded_ms(begin.lease))
            .arg(bounded_ms(begin.kept.min(OPEN_RESPONSE_MAX)))
            .arg(bounded_ms(begin.due))
            .arg(&begin.fingerprint.0[..]);
        match begin.floor {
            Floor::None => cmd.arg(""),
            Floor::Taken if takes_scope => cmd.arg("s"),
            Floor::Taken => cmd.arg("t"),
            Floor::Lent(token) => cmd.arg(token.0),
        };
        let request = begin.request.map_or(&[][..], |request| &request[..]);
        cmd.arg(begin.scope.to_string()).arg(request);
        if let Some(begun) = begun(self.link.calls().write(cmd).await?)? {
            return Ok(begun);
        }
        // the response is read outside the script, because its journal and answer can be large
        let view = self.get_response(id).await?.ok_or(Refusal::TurnLost)?;
        Ok(match view.answer {
            Some(answer) => Begun::Ended(answer),
            None => Begun::Resumed(view.journal),
        })
    }

    async fn keep_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        token: TurnToken,
        lease: Duration,
    ) -> Result<(), WriteError> {
        let mut cmd = self.response_command(Script::KeepResponse, id, Some(scope));
        cmd.arg(self.ahead())
            .arg(token.0)
            .arg(scope.to_string())
            .arg(bounded_ms(lease));
        done(self.link.calls().write(cmd).await?)
    }

    async fn journal(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        entry: &JournalEntry<'_>,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, WriteError> {
        let step = self.step(id, scope, Step::Entry(entry));
        let Some(write) = write else {
            let outcome = self.do_step(id, &step).await?;
            return Ok(outcome.map_or(Journaled::New(None), Journaled::Known));
        };
        let write = write.without_idempotency();
        let reply = self.call_write_scope(scope, &write, Some(&step)).await?;
        Ok(match earlier(&reply)? {
            Some(outcome) => Journaled::Known(outcome),
            None => Journaled::New(Some(written(reply, &write)?)),
        })
    }

    async fn append_events(
        &self,
        id: &ResponseId,
        token: TurnToken,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), WriteError> {
        let [key, _] = self.names.response(id);
        // a cluster does not combine these calls, because few waiting calls share a hash slot
        let mut cmd = Script::AppendEvents.call_on(&key, !self.link.is_cluster());
        cmd.arg(self.ahead())
            .arg(token.0)
            .arg(first)
            .arg(&packed(events)[..]);
        done(self.link.calls().write(cmd).await?)
    }

    async fn read_events(
        &self,
        id: &ResponseId,
        from: u64,
        limit: usize,
    ) -> Result<Option<ResponseEvents>, StoreError> {
        let [key, events] = self.names.response(id);
        let mut meta = command("HGET");
        meta.arg(&key).arg("M");
        let pttl = |key: &str| {
            let mut cmd = command("PTTL");
            cmd.arg(key);
            cmd
        };
        let (ttl, events_ttl) = (pttl(&key), pttl(&events));
        let mut range = command("XRANGE");
        range
            .arg(&events)
            .arg(format!("{}-0", from.saturating_add(1)))
            .arg("+")
            .arg("COUNT")
            .arg(limit.clamp(1, i64::MAX as usize));
        // the meta is read first: if it shows that the response has ended, the events read after it are complete
        let cmds = [meta, ttl, events_ttl, range];
        let [meta, ttl, events_ttl, events] = self.link.calls().read_all(cmds).await?;
        // a missing key has a negative TTL
        let is_kept = |ttl| matches!(ttl, Value::Int(ms) if ms > self.ahead() as i64);
        if meta == Value::Nil || !is_kept(ttl) {
            return Ok(None);
        }
        let Meta {
            has_ended,
            next_event,
            ..
        } = Meta::read(bytes(&meta)?)?;
        if next_event > 0 && !is_kept(events_ttl) {
            return Ok(None);
        }
        let events = array(events)?;
        Ok(Some(ResponseEvents {
            events: events.iter().map(event).collect::<Result<_, _>>()?,
            has_ended,
        }))
    }

    async fn end_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        end: &EndResponse<'_>,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, WriteError> {
        let step = self.step(id, scope, Step::End(end));
        let earlier_answer = match write {
            None => self.do_step(id, &step).await?,
            Some(EndWrite::Scope(write)) => {
                let write = write.without_idempotency();
                let reply = self.call_write_scope(scope, &write, Some(&step)).await?;
                let earlier_answer = earlier(&reply)?;
                if earlier_answer.is_none() {
                    written(reply, &write)?;
                }
                earlier_answer
            }
            Some(EndWrite::Thread(write)) => {
                let thread = scope.thread().ok_or(Refusal::ThreadNotFound)?;
                let write = write.without_idempotency();
                self.write_in_response(thread, &write, &step, earlier)
                    .await?
            }
        };
        Ok(match earlier_answer {
            Some(answer) => Answered::replay(answer),
            None => Answered::fresh(end.answer.clone()),
        })
    }

    async fn get_response(&self, id: &ResponseId) -> Result<Option<ResponseView>, StoreError> {
        let [key, _] = self.names.response(id);
        let mut now = Script::CheckResponse.call(1);
        now.arg(&key).arg(self.ahead());
        let mut fields = command("HGETALL");
        fields.arg(key);
        match self.link.calls().read_fields(now, fields).await? {
            (0, _) => Ok(None),
            (now_ms, fields) => view(fields.pairs()?, now_ms.unsigned_abs()),
        }
    }

    async fn last_response(&self, thread: &ThreadId) -> Result<Option<ResponseId>, StoreError> {
        let mut turn = command("HGET");
        turn.arg(self.names.thread(thread)).arg("U");
        match self.link.calls().read(turn).await? {
            Value::Nil => Ok(None),
            turn => last_response(bytes(&turn)?),
        }
    }

    async fn note_delivered(&self, id: &ResponseId) -> Result<(), StoreError> {
        let mut cmd = self.response_command(Script::DeliveredResponse, id, None);
        cmd.arg(self.ahead());
        is_done(&self.link.calls().write(cmd).await?).map(drop)
    }

    async fn due_responses(
        &self,
        buckets: &[u16],
        limit: usize,
    ) -> Result<Vec<ResponseId>, StoreError> {
        let due_command = |bucket: &u16| {
            let mut cmd = Script::DueResponses.call(1);
            cmd.arg(&self.names.bucket(*bucket).due_responses)
                .arg(self.ahead())
                .arg(limit);
            cmd
        };
        let replies = self.for_each_bucket(buckets, due_command).await?;
        let ids = replies
            .into_iter()
            .map(ids)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(ids.concat())
    }

    async fn delete_response(&self, id: &ResponseId) -> Result<bool, StoreError> {
        let mut cmd = self.response_command(Script::ForgetResponse, id, None);
        cmd.arg(self.ahead());
        is_done(&self.link.calls().write(cmd).await?)
    }
}

/// Packs events into one argument, each after its length.
fn packed(events: &[Bytes]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(events.iter().map(|event| 4 + event.len()).sum());
    for event in events {
        // the length fits into 4 bytes, because an event is smaller than an answer, which is limited to 8 MiB
        packed.extend_from_slice(&(event.len() as u32).to_be_bytes());
        packed.extend_from_slice(event);
    }
    packed
}

impl RedisStore {
    fn step<'a>(
        &'a self,
        id: &ResponseId,
        scope: &'a ScopeId,
        step: Step<'a>,
    ) -> StepOfResponse<'a> {
        let [key, _] = self.names.response(id);
        StepOfResponse {
            key,
            channel: &self.names.ended_turns,
            scope,
            archive: self.retention.archive,
            step,
        }
    }

    /// Performs a step of a response without writing to the scope. Returns the outcome of an earlier attempt, if any.
    async fn do_step(
        &self,
        id: &ResponseId,
        step: &StepOfResponse<'_>,
    ) -> Result<Option<Bytes>, WriteError> {
        let mut cmd = self.response_command(Script::StepResponse, id, Some(step.scope));
        cmd.arg(self.ahead());
        step.add_to(&mut cmd);
        let reply = self.link.calls().write(cmd).await?;
        match earlier(&reply)? {
            None => done(reply).map(|()| None),
            outcome => Ok(outcome),
        }
    }

    fn scope_response_command(&self, script: Script, id: &ResponseId, scope: &ScopeId) -> Command {
        let [key, _] = self.names.response(id);
        let keys = self.names.scope(scope);
        let mut cmd = script.call(4);
        cmd.arg(key).arg(keys.scope).arg(keys.history).arg(keys.ids);
        cmd
    }

    fn response_command(
        &self,
        script: Script,
        id: &ResponseId,
        scope: Option<&ScopeId>,
    ) -> Command {
        let thread = scope.and_then(ScopeId::thread);
        let [key, _] = self.names.response(id);
        let mut cmd = script.call(1 + usize::from(thread.is_some()));
        cmd.arg(key);
        if let Some(thread) = thread {
            cmd.arg(self.names.thread(thread));
        }
        cmd
    }
}
