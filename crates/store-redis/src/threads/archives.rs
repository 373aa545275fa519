use async_trait::async_trait;
use redis::Value;

use super::{arguments, replies};
use crate::scopes::replies as scope_replies;
use crate::shared::archive_names::{self, hex};
use crate::shared::{Meta, state, take};
use crate::transport::{Command, Fields, UNKNOWN, array, bytes, command, integer, text, time_ms};
use crate::{BUCKETS, RedisStore, Script, Unreadable};
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::{EndReason, Json, Life, Thread, ThreadId, ThreadPolicy};
use threadkeep_store::{
    Archive, ArchiveHead, ArchivePage, ArchivePosition, Archives, StoreError, WriteError, millis,
};

const CORRUPT: StoreError = StoreError::Corrupt("an archive of an unknown form");

#[async_trait]
impl Archives for RedisStore {
    async fn get_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<Archive>, StoreError> {
        let Some(found) = self.find_archive(id, life).await? else {
            return Ok(None);
        };
        let retention_ms = millis(self.retention.archive);
        let expires_ms = found.archive.head.archived_ms.saturating_add(retention_ms);
        let is_kept = !found.is_restored && expires_ms > self.now_ms().await?;
        Ok(is_kept.then_some(found.archive))
    }

    async fn get_final(&self, id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError> {
        let found = self.find_archive(id, Some(life)).await?;
        Ok(found.map(|found| found.archive))
    }

    async fn list_archives(
        &self,
        after: &ArchivePosition,
        limit: usize,
    ) -> Result<ArchivePage, StoreError> {
        let now_ms = self.now_ms().await?;
        // an archive of exactly that age has expired
        let oldest_ms = now_ms.saturating_sub(millis(self.retention.archive)) + 1;
        let listed = self.list_members(after, oldest_ms, limit).await?;
        let next = listed.has_more.then(|| match listed.members.last() {
            Some((archived_ms, id, life)) => ArchivePosition {
                archived_ms: *archived_ms,
                archive: Some((*id, *life)),
            },
            None => *after,
        });
        let heads = self.read_heads(&listed.members).await?;
        Ok(ArchivePage { heads, next })
    }

    async fn restore(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &ThreadPolicy,
    ) -> Result<Option<Thread>, WriteError> {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::Restore.call(5);
        cmd.arg(bucket.thread(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(bucket.watch(id))
            .arg(arguments::restoration(
                policy,
                self.ahead(),
                &self.retention,
            ))
            .arg(life.map_or_else(String::new, hex))
            .arg(arguments::trace());
        let reply = self.link.calls().write(cmd).await?;
        replies::restored(reply, policy)
    }
}

struct FoundArchive {
    archive: Archive,
    /// Whether the thread has been restored. If it has, the archive remains only for readers of the end event.
    is_restored: bool,
}

/// The sort key of the list: archive time, id and life.
type Member = (u64, ThreadId, Life);

struct IndexPart {
    members: Vec<Member>,
    has_more: bool,
}

impl RedisStore {
    async fn find_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<FoundArchive>, StoreError> {
        let last = self.names.bucket_of(id).archive(id);
        let found = self.read_archive(id, &last).await?;
        match (life, found) {
            (None, found) => Ok(found),
            (Some(life), Some(found)) if found.archive.head.life == life => Ok(Some(found)),
            // reads this name second, because an archive is renamed only from the first name to the second, never back
            (Some(life), _) => {
                let earlier = format!("{last}:{}", hex(life));
                self.read_archive(id, &earlier).await
            }
        }
    }

    async fn read_archive(
        &self,
        id: &ThreadId,
        key: &str,
    ) -> Result<Option<FoundArchive>, StoreError> {
        let mut ttl = command("PTTL");
        ttl.arg(key);
        let mut fields = command("HGETALL");
        fields.arg(key);
        let [ttl, fields] = self.link.calls().read_all([ttl, fields]).await?;
        if !self.key_exists(&ttl) {
            return Ok(None);
        }
        let fields = Fields::Read(fields);
        let fields = fields.pairs()?;
        let Some((meta, state)) = state::assemble(&fields)? else {
            return Ok(None);
        };
        let field = |name: &[u8]| {
            let found = fields.iter().find(|(field, _)| *field == name);
            found.map(|(_, value)| *value)
        };
        let about = [b"M", b"E", b"D", b"S", b"P"].map(|name| field(name));
        let head = head(*id, about)?;
        Ok(head.map(|head| FoundArchive {
            archive: Archive {
                head,
                owner: meta.owner,
                state,
            },
            is_restored: field(b"R").is_some(),
        }))
    }

    /// Returns whether a key with the TTL `ttl` exists. Allows for the clock offset that tests may set.
    pub(crate) fn key_exists(&self, ttl: &Value) -> bool {
        integer(ttl).is_ok_and(|ttl_ms| ttl_ms > self.ahead())
    }

    /// Reads the index members after `after` from all buckets, up to the position to which every bucket was read.
    async fn list_members(
        &self,
        after: &ArchivePosition,
        oldest_ms: u64,
        limit: usize,
    ) -> Result<IndexPart, StoreError> {
        // buckets have about equal shares, so few need a second read
        let each = limit / 32 + 8;
        let (from_ms, last) = match &after.archive {
            Some((id, life)) if after.archived_ms >= oldest_ms => {
                (after.archived_ms, archive_names::write(id, *life))
            }
            _ => (after.archived_ms.max(oldest_ms), String::new()),
        };
        let cmds = (0..BUCKETS as u16).map(|bucket| {
            let mut cmd = Script::ListArchives.call(1);
            cmd.arg(&self.names.bucket(bucket).archives)
                .arg(from_ms)
                .arg(&last)
                .arg(each);
            cmd
        });
        let replies = self.background.calls().read_many(cmds).await?;
        let mut members = Vec::new();
        // The list is complete up to `read_to`. A bucket that returned a full portion may have more members after the
        // last member in the portion, so `read_to` is the earliest of these last members.
        let mut read_to: Option<Member> = None;
        for reply in replies {
            let reply = array(reply)?;
            let bucket_members = members_with_scores(&reply, &self.unreadable);
            let last = bucket_members
                .last()
                .filter(|_| reply.len() == 2 * each)
                .copied();
            read_to = read_to.into_iter().chain(last).min();
            members.extend(bucket_members);
        }
        members.sort_unstable();
        let is_read = |member: &&Member| read_to.is_none_or(|read_to| **member <= read_to);
        let count = members.iter().take_while(is_read).count().min(limit);
        let has_more = count < members.len() || read_to.is_some();
        members.truncate(count);
        Ok(IndexPart { members, has_more })
    }

    async fn read_heads(&self, members: &[Member]) -> Result<Vec<ArchiveHead>, StoreError> {
        let hmget = |key: String| {
            let mut cmd = command("HMGET");
            cmd.arg(key)
                .arg("M")
                .arg("E")
                .arg("D")
                .arg("S")
                .arg("P")
                .arg("R");
            cmd
        };
        let cmds = members.iter().flat_map(|(_, id, life)| -> [Command; 2] {
            let last = self.names.bucket_of(id).archive(id);
            let earlier = format!("{last}:{}", hex(*life));
            [hmget(last), hmget(earlier)]
        });
        let replies = self.background.calls().read_many(cmds).await?;
        let mut heads = Vec::with_capacity(members.len());
        for ((_, id, life), replies) in members.iter().zip(replies.chunks(2)) {
            for reply in replies {
                let Value::Array(fields) = reply else {
                    return Err(UNKNOWN);
                };
                let [about @ .., restored] = &fields[..] else {
                    return Err(UNKNOWN);
                };
                // skips an archive that was restored or swept after it was listed
                let is_current = *restored == Value::Nil;
                let about: &[Value; 5] = about.try_into().map_err(|_| UNKNOWN)?;
                let found = head(*id, about.each_ref().map(|field| bytes(field).ok()));
                let found = self.unreadable.skip_one("archives", found).flatten();
                heads.extend(found.filter(|head| is_current && head.life == *life));
            }
        }
        Ok(heads)
    }

    async fn now_ms(&self) -> Result<u64, StoreError> {
        let time = self.link.calls().read(command("TIME")).await?;
        Ok(time_ms(&time)? + self.ahead())
    }
}

fn members_with_scores(reply: &[Value], unreadable: &Unreadable) -> Vec<Member> {
    let read = |pair: &[Value]| {
        let (id, life) = archive_names::read(text(&pair[0])?)?;
        Ok((integer(&pair[1])?, id, life))
    };
    unreadable.skip("archives", reply.chunks_exact(2).map(read))
}

fn head(id: ThreadId, fields: [Option<&[u8]>; 5]) -> Result<Option<ArchiveHead>, StoreError> {
    let [Some(meta), Some(end), metadata, scope, checkpoints] = fields else {
        return Ok(None);
    };
    if end.len() != 13 {
        return Err(CORRUPT);
    }
    let meta = Meta::read(meta)?;
    let mut rest = end;
    let reason = match take(&mut rest, 1) {
        1 => EndReason::Destroyed,
        _ => EndReason::Expired,
    };
    Ok(Some(ArchiveHead {
        id,
        life: meta.stamp.life,
        version: meta.stamp.version,
        size_bytes: meta.size_bytes,
        reason,
        ended_ms: take(&mut rest, 6),
        archived_ms: take(&mut rest, 6),
        metadata: match metadata {
            None => Json::empty_object(),
            Some(metadata) => {
                Json::from_compact(std::str::from_utf8(metadata).map_err(|_| UNKNOWN)?)
            }
        },
        history: match scope {
            None => HistorySummary::EMPTY,
            Some(scope) => scope_replies::history(scope)?,
        },
        checkpoints: checkpoints.map_or_else(|| Ok(Vec::new()), numbers)?,
    }))
}

fn numbers(list: &[u8]) -> Result<Vec<u32>, StoreError> {
    let numbers = str::from_utf8(list).map_err(|_| CORRUPT)?.split(',');
    let numbers = numbers.map(|number| number.parse().map_err(|_| CORRUPT));
    numbers.collect()
}
