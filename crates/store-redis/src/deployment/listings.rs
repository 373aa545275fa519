use async_trait::async_trait;

use crate::transport::{array, command, text};
use crate::{RedisStore, Script};
use threadkeep_store::{Listing, Listings, StoreError};

fn without_owner(name: &str) -> Listing<'_> {
    Listing { name, owner: None }
}

#[async_trait]
impl Listings for RedisStore {
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        look_ms: u64,
    ) -> Result<(), StoreError> {
        let keys = self.names.list(listing);
        let mut cmd = Script::ListAdd.call(3 + usize::from(keys.part.is_some()));
        cmd.arg(keys.members).arg(keys.due).arg(keys.owners);
        if let Some(part) = keys.part {
            cmd.arg(part);
        }
        cmd.arg(member).arg(at_ms).arg(look_ms);
        self.link.calls().write(cmd).await.map(drop)
    }

    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let Some(last) = (limit as u64).checked_sub(1) else {
            return Ok(Vec::new());
        };
        let keys = self.names.list(listing);
        // Redis indexes are signed 64-bit integers
        let offset = offset.min(i64::MAX as u64 / 2);
        let mut cmd = command("ZREVRANGE");
        cmd.arg(keys.part.unwrap_or(keys.members))
            .arg(offset)
            .arg(offset + last);
        let members = array(self.link.calls().read(cmd).await?)?;
        let read = |member| Ok(text(member)?.to_owned());
        Ok(self.unreadable.skip("a list", members.iter().map(read)))
    }

    async fn list_remove(&self, name: &str, members: &[String]) -> Result<(), StoreError> {
        if members.is_empty() {
            return Ok(());
        }
        let keys = self.names.list(&without_owner(name));
        let mut cmd = Script::ListRemove.call(3);
        cmd.arg(keys.members).arg(keys.due).arg(keys.owners);
        cmd.args(members);
        self.link.calls().write(cmd).await.map(drop)
    }

    async fn list_due(
        &self,
        name: &str,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut cmd = command("ZRANGEBYSCORE");
        cmd.arg(self.names.list(&without_owner(name)).due)
            .arg("-inf")
            .arg(by_ms)
            .arg("LIMIT")
            .arg(0)
            .arg(limit);
        let members = array(self.link.calls().read(cmd).await?)?;
        let read = |member| Ok(text(member)?.to_owned());
        Ok(self.unreadable.skip("a list", members.iter().map(read)))
    }

    async fn list_reschedule(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError> {
        if members.is_empty() {
            return Ok(());
        }
        let keys = self.names.list(&without_owner(name));
        let mut cmd = Script::ListReschedule.call(2);
        cmd.arg(keys.members).arg(keys.due);
        for (member, look_ms) in members {
            cmd.arg(member).arg(*look_ms);
        }
        self.link.calls().write(cmd).await.map(drop)
    }
}
