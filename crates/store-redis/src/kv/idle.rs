//! Ends idle namespaces.
//!
//! Nothing is written when the idle time elapses. The next script that reads the namespace removes it from the list,
//! and stores a time. Entries that were last put before that time ended with the namespace, and are deleted later.

use redis::Value;

use super::entry_text::record;
use super::known::Known;
use crate::transport::{Calls, Command, UNKNOWN, array, bytes, integer};
use crate::{EntryKeys, RedisStore, Script};
use threadkeep_domain::Namespace;
use threadkeep_store::{NamespaceRecord, StoreError};

/// Maximum number of namespaces that one script checks. Checking that many takes about 0.1 ms.
const CHECK_BATCH: usize = 100;

#[derive(Debug)]
pub(super) struct Seen {
    pub(super) record: Option<NamespaceRecord>,
    /// Entries that were last put before this time belonged to an earlier namespace of this name, and have ended.
    pub(super) since_ms: u64,
}

impl RedisStore {
    /// Records a use of a namespace, unless a use was recorded a moment ago. Returns a time: entries that were last put
    /// before that time have ended.
    pub(super) async fn use_namespace(
        &self,
        calls: &Calls<'_>,
        namespace: &Namespace,
    ) -> Result<u64, StoreError> {
        let known = self.known_namespaces.find(namespace);
        let now_ms = self.clock.now_ms();
        match known {
            Some(known) if known.is_noted(now_ms) => Ok(known.since_ms),
            // ignores errors: entries on other nodes must stay available while the node with the namespaces is down
            Some(known) if !known.is_idle && calls.has_several_servers() => {
                let check = self.check_command(&[namespace], true);
                let Ok(reply) = calls.peek(check).await else {
                    return Ok(known.since_ms);
                };
                Ok(self.seen(namespace, reply, now_ms)?.since_ms)
            }
            _ => Ok(self.use_and_read(calls, namespace).await?.since_ms),
        }
    }

    pub(super) async fn use_and_read(
        &self,
        calls: &Calls<'_>,
        namespace: &Namespace,
    ) -> Result<Seen, StoreError> {
        let now_ms = self.clock.now_ms();
        let reply = calls.read(self.check_command(&[namespace], true)).await?;
        self.seen(namespace, reply, now_ms)
    }

    fn seen(&self, namespace: &Namespace, reply: Value, now_ms: u64) -> Result<Seen, StoreError> {
        let seen = read_seen(namespace, &array(reply)?)?;
        let known = Known::new(seen.record.as_ref(), seen.since_ms, now_ms);
        self.known_namespaces.add(namespace, known);
        Ok(seen)
    }

    /// Reads namespaces without recording a use. Returns one result per namespace.
    pub(super) async fn read_namespaces(
        &self,
        calls: &Calls<'_>,
        namespaces: &[Namespace],
    ) -> Result<Vec<Result<Seen, StoreError>>, StoreError> {
        let chunks = || namespaces.chunks(CHECK_BATCH);
        let cmds =
            chunks().map(|chunk| self.check_command(&chunk.iter().collect::<Vec<_>>(), false));
        let replies = calls.read_many(cmds).await?;
        let mut results = Vec::with_capacity(namespaces.len());
        for (chunk, reply) in chunks().zip(replies) {
            let reply = array(reply)?;
            let seen = chunk.iter().zip(reply.chunks(2));
            results.extend(seen.map(|(namespace, reply)| read_seen(namespace, reply)));
        }
        Ok(results)
    }

    fn check_command(&self, namespaces: &[&Namespace], is_use: bool) -> Command {
        let mut cmd = Script::LookAtNamespaces.call(4);
        cmd.args(self.names.namespaces())
            .arg(self.ahead())
            .arg(u64::from(is_use));
        for namespace in namespaces {
            cmd.arg(namespace.as_str());
        }
        cmd
    }

    /// Deletes the entries of ended namespaces, so that usage does not include these entries.
    pub(super) async fn delete_ended_entries(
        &self,
        namespaces: &[Namespace],
    ) -> Result<(), StoreError> {
        let seen = self
            .read_namespaces(&self.background.calls(), namespaces)
            .await?;
        for (namespace, seen) in namespaces.iter().zip(seen) {
            // the list of namespaces reports unreadable ones
            if let Ok(Seen { since_ms, .. }) = seen
                && since_ms > 0
            {
                self.bury(namespace, since_ms).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn end_idle(&self) -> Result<(), StoreError> {
        loop {
            let mut cmd = Script::EndIdle.call(4);
            cmd.args(self.names.namespaces())
                .arg(self.ahead())
                .arg(CHECK_BATCH);
            // a retry ends other namespaces, or none
            let reply = array(self.background.calls().read(cmd).await?)?;
            let (checked, ended) = reply.split_first().ok_or(UNKNOWN)?;
            for pair in ended.chunks_exact(2) {
                let (name, since_ms) = (bytes(&pair[0])?, integer(&pair[1])?);
                let name_text = str::from_utf8(name).ok();
                match name_text.and_then(|name| Namespace::new(name).ok()) {
                    Some(namespace) => self.bury(&namespace, since_ms).await?,
                    None => self.forget_ended(name, since_ms).await?,
                }
            }
            if integer(checked)? < CHECK_BATCH as u64 && ended.len() < 2 * CHECK_BATCH {
                return Ok(());
            }
        }
    }

    async fn bury(&self, namespace: &Namespace, since_ms: u64) -> Result<(), StoreError> {
        let bury = |entries: &[EntryKeys<'_>]| bury_command(entries, since_ms);
        self.delete_entries(namespace, bury).await?;
        let name = namespace.as_str().as_bytes();
        self.forget_ended(name, since_ms).await
    }

    async fn forget_ended(&self, name: &[u8], since_ms: u64) -> Result<(), StoreError> {
        let [.., list] = self.names.namespaces();
        let mut cmd = Script::ForgetEnded.call(1);
        cmd.arg(list).arg(name).arg(since_ms);
        self.background.calls().read(cmd).await.map(drop)
    }
}

/// Builds the command that deletes those of `entries` that were last put before `since_ms`. All entries must be in one
/// bucket. Panics if `entries` is empty.
fn bury_command(entries: &[EntryKeys<'_>], since_ms: u64) -> Command {
    let bucket = entries[0].bucket;
    let mut cmd = Script::BuryEntries.call(4 + entries.len());
    cmd.arg(&bucket.entry_heads)
        .arg(&bucket.entry_members)
        .arg(&bucket.entry_ends)
        .arg(&bucket.entry_counts);
    for keys in entries {
        cmd.arg(&keys.entry);
    }
    cmd.arg(since_ms);
    for keys in entries {
        cmd.arg(&keys.member);
    }
    cmd
}

fn read_seen(namespace: &Namespace, reply: &[Value]) -> Result<Seen, StoreError> {
    let [packed, since_ms] = reply else {
        return Err(UNKNOWN);
    };
    let packed = bytes(packed)?;
    let read = || record(namespace, packed);
    Ok(Seen {
        record: (!packed.is_empty()).then(read).transpose()?,
        since_ms: integer(since_ms)?,
    })
}
