use std::time::Duration;

use async_trait::async_trait;
use redis::Value;

use crate::transport::{UNKNOWN, array, integer};
use crate::{RedisStore, Script};
use threadkeep_store::{Announcements, Leases, StoreError, millis};

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

    async fn announce(
        &self,
        pool: &str,
        holder: &str,
        announcement: &[u8],
        note: Option<&[u8]>,
        lasts: Duration,
    ) -> Result<Announcements, StoreError> {
        let mut cmd = Script::Announce.call(1);
        cmd.arg(self.names.pool(pool))
            .arg(self.ahead())
            .arg(holder)
            .arg(millis(lasts))
            .arg(announcement);
        if let Some(note) = note {
            cmd.arg(note);
        }
        let reply = array(self.background.calls().read(cmd).await?)?;
        let text = |value| match value {
            Value::BulkString(text) => Ok(Some(text.into())),
            Value::Nil => Ok(None),
            _ => Err(UNKNOWN),
        };
        let mut texts = reply.into_iter().map(text);
        Ok(Announcements {
            note: texts.next().ok_or(UNKNOWN)??,
            announcements: texts.collect::<Result<_, _>>()?,
        })
    }

    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError> {
        let mut cmd = Script::Release.call(1);
        cmd.arg(self.names.pool(pool)).arg(holder);
        self.background.calls().read(cmd).await.map(drop)
    }
}
