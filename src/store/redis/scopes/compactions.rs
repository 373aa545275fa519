//! Compactions of histories, as `lua/scopes/compact_history.lua` does them.

use redis::Value;

use super::arguments;
use super::replies::Meta;
use crate::domain::scope::{Compacted, Compaction, HistoryLimit, ScopeId};
use crate::domain::{Refusal, ThreadId};
use crate::store::WriteError;
use crate::store::redis::RedisStore;
use crate::store::redis::keys::ScopeKeys;
use crate::store::redis::refusals::accepted;
use crate::store::redis::scripts::Script;
use crate::store::redis::threads::arguments::{bounded_ms, idempotency, put};
use crate::store::redis::transport::commands::Command;
use crate::store::redis::transport::link::Calls;
use crate::store::redis::transport::replies::{UNKNOWN, array, bytes, integer, is_done, text};

/// A later item that is removed while others are copied makes the copy useless. So often it is begun again.
const ATTEMPTS: usize = 3;
/// The largest number that has six bytes.
const MOST: u64 = (1 << 48) - 1;

/// The progress of a compaction after a call.
enum Done {
    /// More items have to be copied.
    Part,
    All(Compacted),
    /// Copies of later items are left in the segment.
    AllButTrimming(Compacted),
}

impl RedisStore {
    /// Compacts a history in as many calls as its later items need; the last of them is the whole change.
    pub(super) async fn compact(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        let scope = ScopeId::Thread(*id);
        let keys = self.names.scope(&scope);
        let calls = self.link.calls();
        let mut attempt = 1;
        let mut name: [u8; 8] = rand::random();
        let mut is_first = true;
        loop {
            let cmd = self.compacting(&keys, id, compaction, name);
            match read(calls.write(cmd).await?, &compaction.limit) {
                Ok(Done::Part) => is_first = false,
                Ok(Done::All(compacted)) => return Ok(compacted),
                Ok(Done::AllButTrimming(compacted)) => {
                    self.trim(&calls, &keys, compacted.segment, compaction.through)
                        .await?;
                    return Ok(compacted);
                }
                Err(WriteError::Refused(Refusal::PrefixChanged { .. }))
                    if !is_first && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                    name = rand::random();
                    is_first = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn compacting(
        &self,
        keys: &ScopeKeys<'_>,
        id: &ThreadId,
        compaction: &Compaction<'_>,
        name: [u8; 8],
    ) -> Command {
        let mut rules = Vec::with_capacity(30);
        put(&mut rules, self.ahead(), 6);
        put(&mut rules, compaction.through.min(MOST), 6);
        put(&mut rules, compaction.count.min(MOST), 6);
        put(&mut rules, bounded_ms(compaction.keep), 6);
        put(&mut rules, compaction.limit.max_bytes, 6);
        let mut cmd = Script::CompactHistory.call(5);
        cmd.arg(&keys.scope)
            .arg(&keys.history)
            .arg(&keys.ids)
            .arg(&keys.answers)
            .arg(self.names.bucket_of(id).thread(id))
            .arg(rules)
            .arg(arguments::who(compaction.access))
            .arg(arguments::turn(compaction.turn))
            .arg(idempotency(compaction.idempotency))
            .arg(hex::encode(name));
        for item in compaction.items {
            arguments::add_item(&mut cmd, item);
        }
        cmd
    }

    /// Removes the copies of later items from a segment. Where this stops halfway, they are invisible, and gone with the segment.
    async fn trim(
        &self,
        calls: &Calls<'_>,
        keys: &ScopeKeys<'_>,
        segment: u32,
        through: u64,
    ) -> Result<(), WriteError> {
        loop {
            let mut cmd = Script::TrimSegment.call(1);
            cmd.arg(&keys.scope).arg(segment).arg(through);
            if is_done(&calls.write(cmd).await?)? {
                return Ok(());
            }
        }
    }
}

fn read(reply: Value, limit: &HistoryLimit) -> Result<Done, WriteError> {
    let reply = accepted(array(reply)?, limit)?;
    let [_, replayed, packed, segment, dropped, is_trimmed] = &reply[..] else {
        return match &reply[..] {
            [part] if text(part)? == "P" => Ok(Done::Part),
            _ => Err(UNKNOWN.into()),
        };
    };
    let compacted = Compacted {
        stamp: Meta::read(bytes(packed)?)?.stamp,
        segment: integer(segment)? as u32,
        dropped_segments: integer(dropped)? as u32,
        replayed: is_done(replayed)?,
    };
    Ok(match is_done(is_trimmed)? {
        true => Done::All(compacted),
        false => Done::AllButTrimming(compacted),
    })
}
