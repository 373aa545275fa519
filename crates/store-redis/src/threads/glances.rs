use std::collections::BTreeMap;

use redis::Value;

use crate::transport::{Command, UNKNOWN, array, bytes, integer};
use crate::{RedisStore, Script, bucket_number};
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{GLANCE_MAX_BYTES, HistoryGlance, StoreError};

/// Maximum number of threads in a bucket that one script summarizes. The script takes less than a millisecond unless
/// the items are large.
const AT_ONCE: usize = 64;

impl RedisStore {
    /// Summarizes each history. A script that has read a lot of data leaves the remaining threads to the next call.
    pub(super) async fn glances(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryGlance>>, StoreError> {
        let mut glances = vec![None; ids.len()];
        let mut missing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            missing.entry(bucket_number(id)).or_default().push(place);
        }
        while !missing.is_empty() {
            let cmds: Vec<_> = missing
                .values()
                .map(|places| self.glance_at(places.iter().map(|place| &ids[*place]), opening))
                .collect();
            let replies = self.link.calls().read_many(cmds).await?;
            for (places, reply) in missing.values_mut().zip(replies) {
                let found = array(reply)?;
                if found.is_empty() || found.len() > places.len() {
                    return Err(UNKNOWN);
                }
                for (place, reply) in places.drain(..found.len()).zip(found) {
                    glances[place] = glance(reply)?;
                }
            }
            missing.retain(|_, places| !places.is_empty());
        }
        Ok(glances)
    }

    fn glance_at<'a>(&self, ids: impl Iterator<Item = &'a ThreadId>, opening: usize) -> Command {
        let ids: Vec<_> = ids.take(AT_ONCE).collect();
        let mut cmd = Script::GlanceHistories.call(3 * ids.len());
        for id in ids {
            let scope = ScopeId::Thread(*id);
            let keys = self.names.scope(&scope);
            cmd.arg(self.names.thread(id))
                .arg(&keys.scope)
                .arg(&keys.history);
        }
        cmd.arg(self.ahead()).arg(opening).arg(GLANCE_MAX_BYTES);
        cmd
    }
}

fn glance(reply: Value) -> Result<Option<HistoryGlance>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let [items, newest, Value::Array(opening)] = &array(reply)?[..] else {
        return Err(UNKNOWN);
    };
    let newest_ms = match newest {
        Value::Nil => None,
        newest => Some(integer(newest)?),
    };
    let opening = opening.iter().map(|value| Ok(beginning(bytes(value)?)));
    Ok(Some(HistoryGlance {
        items: integer(items)?,
        newest_ms,
        opening: opening.collect::<Result<_, StoreError>>()?,
    }))
}

/// Returns the text of a value. If the value was cut within a character, drops the incomplete character.
fn beginning(value: &[u8]) -> Box<str> {
    let whole = value.utf8_chunks().next();
    whole.map_or("", |whole| whole.valid()).into()
}
