use std::collections::HashMap;
use std::slice;

use async_trait::async_trait;
use futures_util::future::{try_join, try_join_all};
use redis::Value;

use super::entry_text::{entry, lifetime_ms, pack_usage, record, serialize, usage};
use crate::shared::{arguments, precondition as condition};
use crate::transport::{Calls, Command, UNKNOWN, array, bytes, command, integer, is_done};
use crate::{EntryKeys, RedisStore, Script, unless_refused};
use threadkeep_domain::{EntryKey, IdempotencyKey, Life, Namespace, Refusal, Stamp};
use threadkeep_store::{
    Answered, Entry, EntryHead, EntryPage, EntryRange, EntryTerms, NamespaceChange, NamespacePage,
    NamespacePosition, NamespaceRecord, Namespaces, NewEntry, Put, Reading, StoreError, Usage,
    WriteError,
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
        let check = match reading {
            Reading::Plain => {
                let mut ttl = command("PTTL");
                ttl.arg(&keys.entry);
                ttl
            }
            Reading::Use => self.use_entry_command(&keys),
        };
        let mut get = command("GET");
        get.arg(&keys.entry);
        let calls = self.link.calls();
        let used = self.use_namespace(&calls, namespace);
        let (since_ms, [checked, stored]) = try_join(used, calls.read_all([check, get])).await?;
        let is_living = match reading {
            // -1 means that the entry never expires
            Reading::Plain => checked == Value::Int(-1) || self.key_exists(&checked),
            Reading::Use => checked == Value::Int(1),
        };
        match stored {
            Value::BulkString(stored) if is_living => {
                let entry = entry(stored)?;
                Ok(Some(entry).filter(|entry| entry.head.updated_ms >= since_ms))
            }
            _ => Ok(None),
        }
    }

    async fn get_heads(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
    ) -> Result<Vec<Option<EntryHead>>, StoreError> {
        let since_ms = self.use_namespace(&self.link.calls(), namespace).await?;
        let heads = self.read_entry_heads(namespace, keys.to_vec(), since_ms);
        let heads: HashMap<_, _> = heads.await?.into_iter().collect();
        Ok(keys.iter().map(|key| heads.get(key).cloned()).collect())
    }

    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, WriteError> {
        let calls = self.link.calls();
        let (lifetime, since_ms) = match entry.lifetime {
            Some(lifetime) => (lifetime, self.use_namespace(&calls, namespace).await?),
            None => {
                let seen = self.use_and_read(&calls, namespace).await?;
                let default = seen.record.and_then(|record| record.default_lifetime);
                (default.unwrap_or(entry.default_lifetime), seen.since_ms)
            }
        };
        let keys = self.names.entry(namespace, key);
        let (serialized, texts_bytes) = serialize(entry);
        // passes the key of the answers only if it is needed, because a call with a missing key waits while its slot
        // migrates to another node
        let answers = terms.idempotency.map(|_| &keys.answers);
        let mut put = Script::PutEntry.call(5 + answers.iter().len());
        put.arg(&keys.entry)
            .arg(&keys.bucket.entry_heads)
            .arg(&keys.bucket.entry_members)
            .arg(&keys.bucket.entry_ends)
            .arg(&keys.bucket.entry_counts)
            .args(answers)
            .arg(self.ahead())
            .arg(&keys.member)
            .arg(condition(terms.precondition))
            .arg(lifetime_ms(lifetime))
            .arg(Life::random().0.to_be_bytes())
            .arg(serialized)
            .arg(texts_bytes)
            .arg(since_ms)
            .arg(arguments::idempotency(terms.idempotency))
            .arg(u64::from(terms.remembers_mismatch));
        let [names, ..] = self.names.namespaces();
        let mut check = command("HEXISTS");
        check.arg(names).arg(namespace.as_str());
        // Checked after the put, so that either a concurrent deletion of the namespace finds the entry, or this check
        // sees the deletion.
        let [reply, namespace_exists] = calls.write_then_read(put, check).await?;
        let (put, entry_exists) = put_reply(reply)?;
        // if the namespace was deleted after the first request, a replay does not create it again
        if entry_exists && integer(&namespace_exists)? == 0 {
            self.open(&calls, namespace).await?;
        }
        Ok(put)
    }

    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, WriteError> {
        let calls = self.link.calls();
        let since_ms = self.use_namespace(&calls, namespace).await?;
        let cmd = self.delete_entries_command(&[self.names.entry(namespace, key)], terms, since_ms);
        let reply = unless_refused(array(calls.write(cmd).await?)?)?;
        let deleted = deleted(&reply)?;
        Ok(Answered {
            answer: deleted.answer == 1,
            replayed: deleted.replayed,
        })
    }

    async fn list_entries(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        self.list(namespace, range, limit).await
    }

    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError> {
        self.open(&self.link.calls(), namespace).await
    }

    async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError> {
        let usages = self.measure_all(slice::from_ref(namespace)).await?;
        let usage = usages.first().map(pack_usage).unwrap_or_default();
        let cmd = self.set_namespace_command(namespace, change, idempotency, &usage);
        // without an idempotency key, a repeat changes nothing
        let calls = self.link.calls();
        let reply = match idempotency {
            None => calls.write_idempotent(cmd).await?,
            Some(_) => calls.write(cmd).await?,
        };
        set_reply(namespace, reply)
    }

    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        let calls = self.link.calls();
        let mut seen = self
            .read_namespaces(&calls, slice::from_ref(namespace))
            .await?;
        seen.pop().ok_or(UNKNOWN)?.map(|seen| seen.record)
    }

    async fn list_namespaces(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        self.list_newest(after, limit).await
    }

    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError> {
        self.measure_all(namespaces).await
    }

    async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, WriteError> {
        if let Some(key) = idempotency
            && let Some(first) = self.remember(namespace, key, DELETION, None).await?
        {
            return Ok(first);
        }
        let calls = self.link.calls();
        let since_ms = self.use_namespace(&calls, namespace).await?;
        let delete = |entries: &[EntryKeys<'_>]| {
            self.delete_entries_command(entries, EntryTerms::default(), since_ms)
        };
        let mut deleted = self.delete_entries(namespace, delete).await?;
        let mut close = Script::CloseNamespace.call(4);
        close.args(self.names.namespaces()).arg(namespace.as_str());
        self.link.calls().write_idempotent(close).await?;
        // deletes again, because concurrent puts that saw the namespace before it was closed may have added entries
        deleted += self.delete_entries(namespace, delete).await?;
        self.confirm_all().await?;
        let fresh = Answered::fresh(deleted);
        let Some(key) = idempotency else {
            return Ok(fresh);
        };
        // if two deletions run concurrently, the answer of the first counts
        match self.remember(namespace, key, DELETION, Some(deleted)).await {
            Ok(first) => Ok(first.unwrap_or(fresh)),
            // Succeeds without storing the answer, because the entries are already deleted.
            Err(WriteError::Refused(Refusal::TooManyIdempotencyKeys { .. })) => Ok(fresh),
            Err(error) => Err(error),
        }
    }

    async fn begin_writes(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
    ) -> Result<bool, WriteError> {
        let begun = self.remember(namespace, idempotency, PUTS, Some(0)).await?;
        Ok(begun.ok_or(UNKNOWN)?.replayed)
    }
}

const DELETION: &str = "D";
const PUTS: &str = "B";

impl RedisStore {
    fn use_entry_command(&self, keys: &EntryKeys<'_>) -> Command {
        let mut cmd = Script::UseEntry.call(3);
        cmd.arg(&keys.entry)
            .arg(&keys.bucket.entry_ends)
            .arg(&keys.bucket.entry_counts)
            .arg(self.ahead())
            .arg(&keys.member);
        cmd
    }

    /// Panics if `entries` is empty.
    fn delete_entries_command(
        &self,
        entries: &[EntryKeys<'_>],
        terms: EntryTerms,
        since_ms: u64,
    ) -> Command {
        let bucket = entries[0].bucket;
        let answers = terms.idempotency.map(|_| &entries[0].answers);
        let mut cmd = Script::DeleteEntries.call(4 + entries.len() + answers.iter().len());
        cmd.arg(&bucket.entry_heads)
            .arg(&bucket.entry_members)
            .arg(&bucket.entry_ends)
            .arg(&bucket.entry_counts);
        for keys in entries {
            cmd.arg(&keys.entry);
        }
        cmd.args(answers)
            .arg(self.ahead())
            .arg(condition(terms.precondition))
            .arg(since_ms)
            .arg(arguments::idempotency(terms.idempotency));
        for keys in entries {
            cmd.arg(&keys.member);
        }
        cmd
    }

    /// Creates the namespace unless it exists. Repeating the call has no further effect.
    async fn open(
        &self,
        calls: &Calls<'_>,
        namespace: &Namespace,
    ) -> Result<NamespaceRecord, StoreError> {
        let cmd = self.set_namespace_command(namespace, NamespaceChange::default(), None, &[]);
        let reply = array(calls.write_idempotent(cmd).await?)?;
        record(namespace, bytes(reply.get(2).ok_or(UNKNOWN)?)?)
    }

    fn set_namespace_command(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
        usage: &[u8],
    ) -> Command {
        let setting = |ms: Option<Option<u64>>| match ms {
            None => String::new(),
            Some(None) => "-".into(),
            Some(Some(ms)) => ms.to_string(),
        };
        let default_ms = change.default_lifetime.map(|it| it.map(lifetime_ms));
        let idle_ms = change.idle_ttl.map(|it| it.map(arguments::bounded_ms));
        let answers = idempotency.map(|_| self.names.namespace_answers(namespace));
        let mut cmd = Script::SetNamespace.call(4 + answers.iter().len());
        cmd.args(self.names.namespaces())
            .args(answers)
            .arg(self.ahead())
            .arg(namespace.as_str())
            .arg(setting(default_ms))
            .arg(setting(idle_ms))
            .arg(arguments::idempotency(idempotency))
            .arg(usage);
        cmd
    }

    /// Stores `answer` for a namespace request, and returns the first answer that was stored. If `answer` is `None`,
    /// only looks up the stored answer.
    async fn remember(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
        kind: &str,
        answer: Option<u64>,
    ) -> Result<Option<Answered<u64>>, WriteError> {
        let mut cmd = Script::RememberAnswer.call(1);
        cmd.arg(self.names.namespace_answers(namespace))
            .arg(self.ahead())
            .arg(arguments::idempotency(Some(idempotency)))
            .arg(kind)
            .arg(answer.map_or_else(String::new, |answer| answer.to_string()));
        let reply = unless_refused(array(self.link.calls().write(cmd).await?)?)?;
        match reply[..] {
            [] => Ok(None),
            _ => Ok(deleted(&reply).map(Some)?),
        }
    }

    /// If writes wait for replicas, waits until the replicas have received all earlier writes to every bucket.
    pub(crate) async fn confirm_all(&self) -> Result<(), StoreError> {
        let calls = self.link.calls();
        let calls = &calls;
        // a single server holds all buckets
        let count = if calls.has_several_servers() {
            usize::MAX
        } else {
            1
        };
        let buckets = self.buckets_of_all().take(count);
        let confirmed =
            buckets.map(|bucket| async move { calls.confirm(&bucket.entry_heads).await });
        try_join_all(confirmed).await.map(drop)
    }
}

fn put_reply(reply: Value) -> Result<(Answered<Put>, bool), WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, version, life, ends_ms, entry_exists] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let life = bytes(life)?.try_into().map_err(|_| UNKNOWN)?;
    let stamp = Stamp {
        version: integer(version)?,
        life: Life(u64::from_be_bytes(life)),
    };
    if *ends_ms == Value::Int(-1) {
        return Err(Refusal::VersionMismatch { current: stamp }.into());
    }
    let answer = Put {
        stamp,
        expires_ms: Some(integer(ends_ms)?).filter(|ends_ms| *ends_ms > 0),
    };
    let replayed = is_done(replayed)?;
    Ok((Answered { answer, replayed }, is_done(entry_exists)?))
}

fn set_reply(
    namespace: &Namespace,
    reply: Value,
) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, packed, measured] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    Ok(Answered {
        answer: (record(namespace, bytes(packed)?)?, usage(bytes(measured)?)?),
        replayed: is_done(replayed)?,
    })
}

pub(crate) fn deleted(reply: &[Value]) -> Result<Answered<u64>, StoreError> {
    match reply {
        [_, replayed, number] => Ok(Answered {
            answer: integer(number)?,
            replayed: is_done(replayed)?,
        }),
        _ => Err(UNKNOWN),
    }
}
