use redis::Value;

use super::arguments;
use super::replies::Meta;
use crate::shared::{bounded_ms, idempotency, put};
use crate::transport::{UNKNOWN, array, bytes, integer, is_done};
use crate::{RedisStore, Script, accepted};
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::{
    Compacted, Compaction, HistoryLimit, LATER_ITEMS_MAX, SEGMENTS_MAX, ScopeId,
};
use threadkeep_store::WriteError;

const POSITION_MAX: u64 = (1 << 48) - 1;

impl RedisStore {
    pub(super) async fn compact(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        let scope = ScopeId::Thread(*id);
        let keys = self.names.scope(&scope);
        let mut rules = Vec::with_capacity(36);
        put(&mut rules, self.ahead(), 6);
        put(&mut rules, compaction.through.min(POSITION_MAX), 6);
        put(&mut rules, compaction.count.min(POSITION_MAX), 6);
        put(&mut rules, bounded_ms(compaction.keep), 6);
        put(&mut rules, compaction.limit.max_bytes, 6);
        put(&mut rules, LATER_ITEMS_MAX as u64, 4);
        put(&mut rules, SEGMENTS_MAX as u64, 2);
        let mut cmd = Script::CompactHistory.call(5);
        cmd.arg(&keys.scope)
            .arg(&keys.history)
            .arg(&keys.ids)
            .arg(&keys.answers)
            .arg(self.names.bucket_of(id).thread(id))
            .arg(rules)
            .arg(arguments::encode_access(compaction.access))
            .arg(arguments::turn(compaction.turn))
            .arg(idempotency(compaction.idempotency));
        for item in compaction.items {
            arguments::add_item(&mut cmd, item);
        }
        read(self.link.calls().write(cmd).await?, &compaction.limit)
    }
}

fn read(reply: Value, limit: &HistoryLimit) -> Result<Compacted, WriteError> {
    let reply = accepted(array(reply)?, limit)?;
    let [_, replayed, packed, segment, dropped] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    Ok(Compacted {
        stamp: Meta::read(bytes(packed)?)?.stamp,
        segment: integer(segment)? as u32,
        dropped_segments: integer(dropped)? as u32,
        replayed: is_done(replayed)?,
    })
}
