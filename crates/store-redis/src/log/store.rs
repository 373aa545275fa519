use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;

use super::{entries, interest};
use crate::scopes::replies as scope_replies;
use crate::shared::{arguments, member, state};
use crate::transport::{Command, UNKNOWN, array, bytes, command, integer, time_ms};
use crate::{BUCKETS, RedisStore, Script, bucket_number};
use threadkeep_domain::scope::{HistorySummary, ScopeId};
use threadkeep_domain::{Completed, Event, Key, Life, Position, Stamp, ThreadId};
use threadkeep_store::{EventLog, Heads, StoreError, Watched, millis};

#[async_trait]
impl EventLog for RedisStore {
    fn buckets(&self) -> u16 {
        BUCKETS as u16
    }

    fn bucket_of(&self, id: &ThreadId) -> u16 {
        bucket_number(id) as u16
    }

    async fn read_log(
        &self,
        after: &[(u16, Position)],
        limit: usize,
    ) -> Result<Vec<Vec<Event>>, StoreError> {
        let mut logs: Vec<Vec<Event>> = after.iter().map(|_| Vec::new()).collect();
        let mut remaining: Vec<_> = after.iter().copied().enumerate().collect();
        while !remaining.is_empty() {
            let cmds = remaining.iter().map(|(_, (bucket, after))| {
                let mut cmd = command("XRANGE");
                cmd.arg(&self.names.bucket(*bucket).log)
                    .arg(format!("({after}"))
                    .arg("+")
                    .arg("COUNT")
                    .arg(limit);
                cmd
            });
            let replies = self.background.calls().read_many(cmds).await?;
            let mut more = Vec::new();
            for ((index, (bucket, _)), entries) in remaining.into_iter().zip(replies) {
                let page = entries::events(bucket, entries)?;
                self.unreadable.skip_events(bucket, &page.unreadable);
                let events = &mut logs[index];
                events.extend(page.events);
                // replaces unreadable events, because a page with fewer than `limit` events means the end of the log
                let last = page.last.filter(|_| page.count == limit);
                if let Some(last) = last.filter(|_| events.len() < limit) {
                    more.push((index, (bucket, last)));
                }
                events.truncate(limit);
            }
            remaining = more;
        }
        Ok(logs)
    }

    async fn log_heads(&self) -> Result<Heads, StoreError> {
        let heads = (0..self.buckets()).map(|number| {
            let bucket = self.names.bucket(number);
            let mut cmd = Script::Head.call(2);
            cmd.arg(&bucket.log).arg(&bucket.horizon);
            cmd
        });
        let (times, heads) = self.background.calls().read_many_timed(heads).await?;
        // no node logs another event with a time before that node's entry in `times`
        let times: Vec<_> = times.iter().map(time_ms).collect::<Result<_, _>>()?;
        let now_ms = times.into_iter().min().ok_or(UNKNOWN)?;
        let newest = |head: &Value| match head {
            Value::Array(head) if head.len() == 2 => entries::newest(&head[0], &head[1]),
            _ => Err(UNKNOWN),
        };
        Ok(Heads {
            now_ms: now_ms + self.ahead(),
            positions: heads.iter().map(newest).collect::<Result<_, _>>()?,
        })
    }

    async fn log_horizons(&self, buckets: &[u16]) -> Result<Vec<Position>, StoreError> {
        let cmds = buckets.iter().map(|number| {
            let mut cmd = command("GET");
            cmd.arg(&self.names.bucket(*number).horizon);
            cmd
        });
        let replies = self.background.calls().read_many(cmds).await?;
        replies.iter().map(entries::position_or_lowest).collect()
    }

    async fn log_completed(&self, id: &ThreadId, completed: &Completed) -> Result<(), StoreError> {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::Completed.call(2);
        cmd.arg(bucket.thread(id))
            .arg(&bucket.log)
            .arg(self.ahead())
            .arg(entries::write_completed(completed))
            .arg(arguments::trace());
        self.background.calls().write(cmd).await.map(drop)
    }

    async fn watch(&self, ids: &[ThreadId], lasts: Duration) -> Result<Vec<Watched>, StoreError> {
        let cmds = ids.iter().map(|id| self.watch_one(id, lasts));
        let replies = self.background.calls().read_many(cmds).await?;
        replies.into_iter().map(watched).collect()
    }

    async fn values_at(
        &self,
        id: &ThreadId,
        at: Stamp,
        keys: &[Key],
        bytes_max: u64,
    ) -> Result<Option<Vec<Option<Bytes>>>, StoreError> {
        let stamp = [&at.life.0.to_be_bytes()[..], &at.version.to_be_bytes()[2..]].concat();
        let mut cmd = Script::ValuesAt.call(1);
        cmd.arg(self.names.bucket_of(id).thread(id))
            .arg(self.ahead())
            .arg(stamp)
            .arg(bytes_max);
        for key in keys {
            cmd.arg(member::field(key));
        }
        let values = state::values(&self.background.calls().read(cmd).await?)?;
        Ok(values.map(|values| values.content))
    }

    async fn watch_all(&self, lasts: Duration) -> Result<u64, StoreError> {
        // allows for a write by another replica that began before that replica saw the key
        let lateness = interest::LATENESS + self.background.timeout();
        let mut cmd = Script::WatchAll.call(1);
        cmd.arg(&self.names.watch_all)
            .arg(self.ahead())
            .arg(millis(lasts))
            .arg(millis(lateness));
        let since = self.background.calls().read(cmd).await?;
        self.interest.forget();
        integer(&since)
    }
}

impl RedisStore {
    fn watch_one(&self, id: &ThreadId, lasts: Duration) -> Command {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::Watch.call(5);
        cmd.arg(bucket.thread(id))
            .arg(bucket.watch(id))
            .arg(&bucket.log)
            .arg(&bucket.horizon)
            .arg(&self.names.scope(&ScopeId::Thread(*id)).scope)
            .arg(self.ahead())
            .arg(millis(lasts));
        cmd
    }
}

fn watched(reply: Value) -> Result<Watched, StoreError> {
    let reply = array(reply)?;
    let [version, life, last, horizon, scope] = &reply[..] else {
        return Err(UNKNOWN);
    };
    let history = match scope {
        Value::Nil => HistorySummary::EMPTY,
        meta => scope_replies::history(bytes(meta)?)?,
    };
    let life: [u8; 8] = bytes(life)?.try_into().map_err(|_| UNKNOWN)?;
    Ok(Watched {
        stamp: Stamp {
            version: integer(version)?,
            life: Life(u64::from_be_bytes(life)),
        },
        next_seq: history.next_seq,
        head: entries::newest(last, horizon)?,
    })
}
