use std::collections::BTreeMap;

use redis::Value;

use crate::transport::{Command, UNKNOWN, array, bytes, integer};
use crate::{RedisStore, Script, bucket_number};
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{HistoryPreview, PREVIEW_BYTES_MAX, StoreError};

/// Maximum number of threads in a bucket that one script summarizes. The script takes less than a millisecond unless
/// the items are large.
const THREADS_MAX: usize = 64;

impl RedisStore {
    /// Summarizes each history. A script that has read a lot of data stops; the next call reads the remaining threads.
    pub(super) async fn previews(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryPreview>>, StoreError> {
        let mut previews = vec![None; ids.len()];
        let mut missing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, id) in ids.iter().enumerate() {
            missing.entry(bucket_number(id)).or_default().push(index);
        }
        while !missing.is_empty() {
            let cmds: Vec<_> = missing
                .values()
                .map(|indexes| {
                    self.preview_command(indexes.iter().map(|index| &ids[*index]), opening)
                })
                .collect();
            let replies = self.link.calls().read_many(cmds).await?;
            for (indexes, reply) in missing.values_mut().zip(replies) {
                let entries = array(reply)?;
                if entries.is_empty() || entries.len() > indexes.len() {
                    return Err(UNKNOWN);
                }
                for (index, reply) in indexes.drain(..entries.len()).zip(entries) {
                    previews[index] = preview(reply)?;
                }
            }
            missing.retain(|_, indexes| !indexes.is_empty());
        }
        Ok(previews)
    }

    fn preview_command<'a>(
        &self,
        ids: impl Iterator<Item = &'a ThreadId>,
        opening: usize,
    ) -> Command {
        let ids: Vec<_> = ids.take(THREADS_MAX).collect();
        let mut cmd = Script::GlanceHistories.call(3 * ids.len());
        for id in ids {
            let scope = ScopeId::Thread(*id);
            let keys = self.names.scope(&scope);
            cmd.arg(self.names.thread(id))
                .arg(&keys.scope)
                .arg(&keys.history);
        }
        cmd.arg(self.ahead()).arg(opening).arg(PREVIEW_BYTES_MAX);
        cmd
    }
}

fn preview(reply: Value) -> Result<Option<HistoryPreview>, StoreError> {
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
    Ok(Some(HistoryPreview {
        items: integer(items)?,
        newest_ms,
        opening: opening.collect::<Result<_, StoreError>>()?,
    }))
}

/// Returns the text of a value. If the value was cut within a character, drops the incomplete character.
fn beginning(value: &[u8]) -> Box<str> {
    let chunk = value.utf8_chunks().next();
    chunk.map_or("", |chunk| chunk.valid()).into()
}
