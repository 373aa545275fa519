//! Entries of namespaces, and the namespaces.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::Value;

use super::entry_text::{entry, lifetime_ms, record, whole};
use crate::domain::{EntryKey, Life, Lifetime, Namespace, Precondition, Stamp};
use crate::store::redis::RedisStore;
use crate::store::redis::keys::EntryKeys;
use crate::store::redis::refusals::unless_refused;
use crate::store::redis::scripts::Script;
use crate::store::redis::threads::arguments;
use crate::store::redis::threads::arguments::precondition as condition;
use crate::store::redis::transport::commands::{Command, command};
use crate::store::redis::transport::link::Calls;
use crate::store::redis::transport::replies::{UNKNOWN, array, bytes, integer};
use crate::store::{
    Entry, EntryPage, NamespacePage, NamespacePlace, NamespaceRecord, Namespaces, NewEntry, Put,
    Reading, StoreError, Usage, WriteError,
};

#[async_trait]
impl Namespaces for RedisStore {
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError> {
        let keys = self.names.entry(namespace, key);
        let look = match reading {
            Reading::Plain => {
                let mut left = command("PTTL");
                left.arg(&keys.entry);
                left
            }
            Reading::Use => self.using(&keys),
        };
        let mut get = command("GET");
        get.arg(&keys.entry);
        let [looked, whole] = self.link.calls().read_all([look, get]).await?;
        let lives = match reading {
            // -1: it has no end
            Reading::Plain => looked == Value::Int(-1) || self.is_there(&looked),
            Reading::Use => looked == Value::Int(1),
        };
        match whole {
            Value::BulkString(whole) if lives => entry(whole).map(Some),
            _ => Ok(None),
        }
    }

    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        precondition: Option<Precondition>,
    ) -> Result<Put, WriteError> {
        let calls = self.link.calls();
        let lifetime = match entry.lifetime {
            Some(lifetime) => lifetime,
            None => {
                let record = self.find_namespace(&calls, namespace).await?;
                let default = record.and_then(|record| record.default_lifetime);
                default.unwrap_or(entry.default_lifetime)
            }
        };
        let keys = self.names.entry(namespace, key);
        let (whole, texts_bytes) = whole(entry);
        let mut put = Script::PutEntry.call(5);
        put.arg(&keys.entry)
            .arg(&keys.bucket.entry_heads)
            .arg(&keys.bucket.entry_members)
            .arg(&keys.bucket.entry_ends)
            .arg(&keys.bucket.entry_counts)
            .arg(self.ahead())
            .arg(&keys.member)
            .arg(condition(precondition))
            .arg(lifetime_ms(lifetime))
            .arg(Life::random().0.to_be_bytes())
            .arg(whole)
            .arg(texts_bytes);
        let [names, _] = self.names.namespaces();
        let mut is_known = command("HEXISTS");
        is_known.arg(names).arg(namespace.as_str());
        // looked up after the put: a concurrent deletion of the namespace finds the entry, or is seen here
        let [reply, is_known] = calls.write_then_read(put, is_known).await?;
        let put = put_reply(reply)?;
        if integer(&is_known)? == 0 {
            self.open(&calls, namespace, "").await?;
        }
        Ok(put)
    }

    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
    ) -> Result<bool, WriteError> {
        let cmd = self.deleting(&[self.names.entry(namespace, key)], precondition);
        let reply = array(self.link.calls().write(cmd).await?)?;
        Ok(deleted(&unless_refused(reply)?)? == 1)
    }

    async fn list_entries(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        self.list(namespace, prefix, after, limit).await
    }

    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError> {
        self.open(&self.link.calls(), namespace, "").await
    }

    async fn set_default_lifetime(
        &self,
        namespace: &Namespace,
        lifetime: Option<Lifetime>,
    ) -> Result<NamespaceRecord, StoreError> {
        let default = lifetime.map_or("-".into(), |lifetime| lifetime_ms(lifetime).to_string());
        let calls = self.link.calls();
        self.open(&calls, namespace, &default).await
    }

    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        self.find_namespace(&self.link.calls(), namespace).await
    }

    async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        self.list_newest(after, limit).await
    }

    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError> {
        self.measure_all(namespaces).await
    }

    async fn delete_namespace(&self, namespace: &Namespace) -> Result<u64, StoreError> {
        let mut deleted = self.delete_entries(namespace).await?;
        let mut close = Script::CloseNamespace.call(2);
        close.args(self.names.namespaces()).arg(namespace.as_str());
        self.link.calls().write_idempotent(close).await?;
        // entries of concurrent puts that have seen a namespace
        deleted += self.delete_entries(namespace).await?;
        self.confirm_all().await?;
        Ok(deleted)
    }
}

impl RedisStore {
    fn using(&self, keys: &EntryKeys<'_>) -> Command {
        let mut cmd = Script::UseEntry.call(3);
        cmd.arg(&keys.entry)
            .arg(&keys.bucket.entry_ends)
            .arg(&keys.bucket.entry_counts)
            .arg(self.ahead())
            .arg(&keys.member);
        cmd
    }

    /// Deletes entries of one bucket.
    ///
    /// # Panics
    /// Without members.
    pub(super) fn deleting(
        &self,
        entries: &[EntryKeys<'_>],
        precondition: Option<Precondition>,
    ) -> Command {
        let bucket = entries[0].bucket;
        let mut cmd = Script::DeleteEntries.call(4 + entries.len());
        cmd.arg(&bucket.entry_heads)
            .arg(&bucket.entry_members)
            .arg(&bucket.entry_ends)
            .arg(&bucket.entry_counts);
        for keys in entries {
            cmd.arg(&keys.entry);
        }
        cmd.arg(self.ahead())
            .arg(arguments::precondition(precondition));
        for keys in entries {
            cmd.arg(&keys.member);
        }
        cmd
    }

    async fn find_namespace(
        &self,
        calls: &Calls<'_>,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        let [names, _] = self.names.namespaces();
        let mut cmd = command("HGET");
        cmd.arg(names).arg(namespace.as_str());
        match calls.read(cmd).await? {
            Value::Nil => Ok(None),
            packed => record(namespace, bytes(&packed)?).map(Some),
        }
    }

    /// Doing it again changes nothing more.
    async fn open(
        &self,
        calls: &Calls<'_>,
        namespace: &Namespace,
        default: &str,
    ) -> Result<NamespaceRecord, StoreError> {
        let mut cmd = Script::OpenNamespace.call(2);
        cmd.args(self.names.namespaces())
            .arg(self.ahead())
            .arg(namespace.as_str())
            .arg(default);
        record(namespace, bytes(&calls.write_idempotent(cmd).await?)?)
    }

    /// Waits, if writes do, until replicas have all that was written to any bucket.
    pub(crate) async fn confirm_all(&self) -> Result<(), StoreError> {
        let calls = self.link.calls();
        let calls = &calls;
        // one server has all of them
        let count = if calls.is_of_several() { usize::MAX } else { 1 };
        let buckets = self.buckets_of_all().take(count);
        let confirmed =
            buckets.map(|bucket| async move { calls.confirm(&bucket.entry_heads).await });
        try_join_all(confirmed).await.map(drop)
    }
}

fn put_reply(reply: Value) -> Result<Put, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [version, life, ends_ms] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let life = bytes(life)?.try_into().map_err(|_| UNKNOWN)?;
    Ok(Put {
        stamp: Stamp {
            version: integer(version)?,
            life: Life(u64::from_be_bytes(life)),
        },
        expires_ms: Some(integer(ends_ms)?).filter(|ends_ms| *ends_ms > 0),
    })
}

/// The reply of the script that deletes, unless it is a refusal.
pub(crate) fn deleted(reply: &[Value]) -> Result<u64, StoreError> {
    match reply {
        [deleted] => integer(deleted),
        _ => Err(UNKNOWN),
    }
}
