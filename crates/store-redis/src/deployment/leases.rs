use std::time::Duration;

use async_trait::async_trait;
use redis::Value;

use crate::transport::{UNKNOWN, array, integer};
use crate::{RedisStore, Script};
use threadkeep_store::{Heard, Leases, StoreError, millis};

#[async_trait]
impl Leases for RedisStore {
    async fn hold(
        &self,
        pool: &str,
        slots: u16,
        holder: &str,
        lasts: Duration,
    ) -> Result<Vec<u16>, StoreError> {
        let mut cmd = Script::Hold.call(1);
        cmd.arg(self.names.pool(pool))
            .arg(self.ahead())
            .arg(slots)
            .arg(holder)
            .arg(millis(lasts));
        let held = array(self.background.calls().read(cmd).await?)?;
        held.iter().map(|slot| Ok(integer(slot)? as u16)).collect()
    }

    async fn introduce(
        &self,
        pool: &str,
        holder: &str,
        words: &[u8],
        note: Option<&[u8]>,
        lasts: Duration,
    ) -> Result<Heard, StoreError> {
        let mut cmd = Script::Introduce.call(1);
        cmd.arg(self.names.pool(pool))
            .arg(self.ahead())
            .arg(holder)
            .arg(millis(lasts))
            .arg(words);
        if let Some(note) = note {
            cmd.arg(note);
        }
        let heard = array(self.background.calls().read(cmd).await?)?;
        let text = |words| match words {
            Value::BulkString(words) => Ok(Some(words.into())),
            Value::Nil => Ok(None),
            _ => Err(UNKNOWN),
        };
        let mut heard = heard.into_iter().map(text);
        Ok(Heard {
            note: heard.next().ok_or(UNKNOWN)??,
            said: heard.collect::<Result<_, _>>()?,
        })
    }

    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError> {
        let mut cmd = Script::Release.call(1);
        cmd.arg(self.names.pool(pool)).arg(holder);
        self.background.calls().read(cmd).await.map(drop)
    }
}
