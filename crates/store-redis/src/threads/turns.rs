use std::time::Duration;

use async_trait::async_trait;
use redis::Value;
use tokio::sync::broadcast;

use super::arguments::{bounded_ms, encode_access, idempotency};
use crate::transport::{Command, UNKNOWN, array, bytes, integer};
use crate::{RedisStore, Script, unless_access_refused, unless_refused};
use threadkeep_domain::{
    Access, IdempotencyKey, Release, TakeTurn, ThreadId, TurnGranted, TurnHeld, TurnState,
    TurnToken,
};
use threadkeep_store::{StoreError, Turns, WriteError};

const EXCLUSIVE: u8 = 1;
const WAITS: u8 = 2;
const ONLY_LOOK_UP: u8 = 4;

#[async_trait]
impl Turns for RedisStore {
    async fn take_turn(
        &self,
        id: &ThreadId,
        access: Access,
        take: &TakeTurn,
    ) -> Result<TurnGranted, WriteError> {
        let exclusive = if take.exclusive { EXCLUSIVE } else { 0 };
        let waits = if take.waits { WAITS } else { 0 };
        let mut cmd = self.take_turn_command(id, access, take.idempotency);
        cmd.arg(take.token.0)
            .arg(bounded_ms(take.ttl))
            .arg(u64::from(exclusive + waits));
        granted(self.link.calls().write(cmd).await?)
    }

    async fn recall_turn(
        &self,
        id: &ThreadId,
        access: Access,
        key: IdempotencyKey,
    ) -> Result<Option<TurnGranted>, WriteError> {
        let mut cmd = self.take_turn_command(id, access, Some(key));
        cmd.arg("").arg(0).arg(u64::from(ONLY_LOOK_UP));
        match self.link.calls().read(cmd).await? {
            Value::Nil => Ok(None),
            reply => granted(reply).map(Some),
        }
    }

    async fn renew_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, WriteError> {
        let mut cmd = self.on_effects(Script::RenewTurn, id, access);
        cmd.arg(token.0).arg(bounded_ms(ttl));
        granted(self.link.calls().write(cmd).await?)
    }

    async fn end_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        release: Release,
    ) -> Result<(), WriteError> {
        let mut cmd = self.on_thread(Script::EndTurn, id, access);
        cmd.arg(token.0)
            .arg(&self.names.ended_turns)
            .arg(match release {
                Release::Complete => "",
                Release::Incomplete => "i",
            });
        unless_refused(array(self.link.calls().write(cmd).await?)?)?;
        Ok(())
    }

    async fn get_turn(&self, id: &ThreadId, access: Access) -> Result<TurnState, WriteError> {
        let cmd = self.on_thread(Script::ReadTurn, id, access);
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        if reply == Value::Nil {
            return Ok(TurnState::default());
        }
        let reply = array(reply)?;
        let [number, held @ ..] = &reply[..] else {
            return Err(UNKNOWN.into());
        };
        let held = match held {
            [ends_ms, exclusive] => Some(TurnHeld {
                ends_ms: integer(ends_ms)?,
                exclusive: integer(exclusive)? == 1,
            }),
            _ => None,
        };
        Ok(TurnState {
            number: turn_number(number)?,
            held,
        })
    }

    fn ended_turns(&self) -> broadcast::Receiver<ThreadId> {
        self.ended_turns.listen(&self.link, &self.names.ended_turns)
    }
}

impl RedisStore {
    fn take_turn_command(
        &self,
        id: &ThreadId,
        access: Access,
        key: Option<IdempotencyKey>,
    ) -> Command {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::TakeTurn.call(3);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(bucket.effects(id))
            .arg(self.ahead())
            .arg(encode_access(access))
            .arg(idempotency(key));
        cmd
    }
}

fn granted(reply: Value) -> Result<TurnGranted, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, token, ends_ms, numbers @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let (number, in_doubt) = match numbers {
        [number, in_doubt] => (turn_number(number)?, turn_number(in_doubt)?),
        // a remembered answer of an earlier release, which did not number turns
        _ => (1, 0),
    };
    let token = bytes(token)?.try_into().map_err(|_| UNKNOWN)?;
    Ok(TurnGranted {
        token: TurnToken(token),
        ends_ms: integer(ends_ms)?,
        number,
        in_doubt,
        replayed: integer(replayed)? == 1,
    })
}

fn turn_number(reply: &Value) -> Result<u32, StoreError> {
    u32::try_from(integer(reply)?).map_err(|_| UNKNOWN)
}
