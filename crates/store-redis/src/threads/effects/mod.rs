pub(crate) mod record;

use async_trait::async_trait;
use redis::Value;

use super::arguments;
use crate::transport::{Command, UNKNOWN, array, bytes, integer, text};
use crate::{RedisStore, Script, unless_access_refused, unless_refused};
use record::Record;
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectState, SettleEffect, Settled,
};
use threadkeep_domain::{Access, ThreadId, TurnToken};
use threadkeep_store::{EffectLedger, StoreError, WriteError};

#[async_trait]
impl EffectLedger for RedisStore {
    async fn begin_effect(
        &self,
        id: &ThreadId,
        access: Access,
        begin: &BeginEffect<'_>,
    ) -> Result<Effect, WriteError> {
        let mut cmd = self.on_effects(Script::BeginEffect, id, access);
        cmd.arg(arguments::turn(begin.turn))
            .arg(begin.id.as_str())
            .arg(record::names(begin.tool, begin.hash))
            .arg(if begin.idempotent { "i" } else { "" })
            .arg(
                begin
                    .retry
                    .map_or_else(String::new, |attempt| attempt.to_string()),
            )
            .arg(
                begin
                    .idempotency
                    .map_or_else(Vec::new, |key| key.digest.0.to_vec()),
            )
            .arg(begin.fence.0)
            .arg(begin.key.0);
        let reply = self.link.calls().write(cmd).await?;
        Ok(effect(&unless_refused(array(reply)?)?)?)
    }

    async fn settle_effect(
        &self,
        id: &ThreadId,
        access: Access,
        settle: &SettleEffect,
        token: Option<TurnToken>,
    ) -> Result<Settled, WriteError> {
        let mut cmd = self.on_effects(Script::SettleEffect, id, access);
        let (state, value) = record::outcome(&settle.outcome);
        cmd.arg(arguments::turn(token))
            .arg(settle.id.as_str())
            .arg(settle.fence.map_or_else(Vec::new, |fence| fence.0.to_vec()))
            .arg(state)
            .arg(value);
        let reply = unless_refused(array(self.link.calls().write(cmd).await?)?)?;
        let [found @ .., repeated] = &reply[..] else {
            return Err(UNKNOWN.into());
        };
        Ok(Settled {
            effect: effect(found)?,
            repeated: integer(repeated)? == 1,
        })
    }

    async fn get_effect(
        &self,
        id: &ThreadId,
        access: Access,
        effect_id: &EffectId,
    ) -> Result<Option<Effect>, WriteError> {
        let mut cmd = self.on_effects(Script::ReadEffects, id, access);
        cmd.arg(effect_id.as_str()).arg("").arg("").arg("");
        let found = unless_access_refused(self.link.calls().read(cmd).await?)?;
        match &array_or_none(found)?[..] {
            [] => Ok(None),
            [found, ..] => Ok(Some(effect(values(found)?)?)),
        }
    }

    async fn list_effects(
        &self,
        id: &ThreadId,
        access: Access,
        state: Option<EffectState>,
        position: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Effect>, WriteError> {
        let mut cmd = self.on_effects(Script::ReadEffects, id, access);
        cmd.arg("")
            .arg(position.map_or_else(String::new, |position| position.to_string()))
            .arg(state.map_or("", record::letter))
            .arg(limit);
        let found = unless_access_refused(self.link.calls().read(cmd).await?)?;
        let found = array_or_none(found)?;
        let effects = found.iter().map(|found| effect(values(found)?));
        Ok(effects.collect::<Result<_, _>>()?)
    }
}

impl RedisStore {
    pub(super) fn on_effects(&self, script: Script, id: &ThreadId, access: Access) -> Command {
        let bucket = self.names.bucket_of(id);
        let mut cmd = script.call(2);
        cmd.arg(bucket.thread(id))
            .arg(bucket.effects(id))
            .arg(self.ahead())
            .arg(arguments::encode_access(access));
        cmd
    }
}

fn effect(reply: &[Value]) -> Result<Effect, StoreError> {
    let [_, letter, packed, value, ..] = reply else {
        return Err(UNKNOWN);
    };
    let record = Record::read(bytes(packed)?)?;
    Ok(record.into_effect(record::state(text(letter)?)?, text(value)?))
}

fn values(reply: &Value) -> Result<&[Value], StoreError> {
    match reply {
        Value::Array(values) => Ok(values),
        _ => Err(UNKNOWN),
    }
}

fn array_or_none(reply: Value) -> Result<Vec<Value>, StoreError> {
    match reply {
        Value::Nil => Ok(Vec::new()),
        reply => array(reply),
    }
}
