use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;

use crate::transport::{UNKNOWN, command, integer, text};
use crate::{RedisStore, Script};
use threadkeep_store::{Registry, StoreError};

#[async_trait]
impl Registry for RedisStore {
    async fn records(&self, kind: &str) -> Result<Vec<(String, Bytes)>, StoreError> {
        let mut cmd = command("HGETALL");
        cmd.arg(self.names.records(kind));
        let Value::Map(pairs) = self.link.calls().read(cmd).await? else {
            return Err(UNKNOWN);
        };
        let read = |(name, record): (Value, Value)| match record {
            Value::BulkString(record) => Ok((text(&name)?.to_owned(), record.into())),
            _ => Err(UNKNOWN),
        };
        let mut records = self.unreadable.skip("records", pairs.into_iter().map(read));
        records.sort_unstable();
        Ok(records)
    }

    async fn put_record(
        &self,
        kind: &str,
        name: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        limit: usize,
    ) -> Result<bool, StoreError> {
        let mut cmd = Script::PutRecord.call(1);
        cmd.arg(self.names.records(kind))
            .arg(name)
            .arg(new)
            .arg(limit);
        if let Some(expected) = expected {
            cmd.arg(expected);
        }
        let done = self.link.calls().write(cmd).await?;
        Ok(integer(&done)? == 1)
    }

    async fn delete_record(&self, kind: &str, name: &str) -> Result<bool, StoreError> {
        let mut cmd = command("HDEL");
        cmd.arg(self.names.records(kind)).arg(name);
        let deleted = self.link.calls().write(cmd).await?;
        Ok(integer(&deleted)? == 1)
    }
}
