use bytes::Bytes;
use redis::Value;

use crate::shared::take;
use crate::transport::{UNKNOWN, array, bytes, integer, is_done, text};
use crate::{accepted, unless_refused};
use threadkeep_domain::scope::{
    Appended, HistorySummary, KvAnswer, ScopeKey, ScopeValue, ScopeWrite, ScopeWritten, StoredItem,
    TaskList,
};
use threadkeep_domain::{Json, Life, Stamp};
use threadkeep_store::{Answered, ItemPosition, ScopeParts, ScopeView, StoreError, WriteError};

const META_BYTES: usize = 75;
/// Size of the field that counts empty positions in the history. The field follows the meta unless the count is 0.
pub(super) const GAPS_BYTES: usize = 6;
const SEALED: u64 = 1;
const HAS_SEGMENTS: u64 = 2;
const CORRUPT: StoreError = StoreError::Corrupt("a scope of an unknown form");

pub(super) struct Meta {
    flags: u64,
    pub(super) stamp: Stamp,
    kv_bytes: u64,
    keys: u32,
    pub(super) created_ms: u64,
    pub(super) updated_ms: u64,
    pub(super) tasks_version: u64,
    pub(super) history: HistorySummary,
}

impl Meta {
    pub(super) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        let gaps_bytes = packed.len().checked_sub(META_BYTES).ok_or(CORRUPT)?;
        if gaps_bytes != 0 && gaps_bytes != GAPS_BYTES {
            return Err(CORRUPT);
        }
        let mut rest = packed;
        let flags = take(&mut rest, 1);
        let life = Life(take(&mut rest, 8));
        let version = take(&mut rest, 6);
        let kv_bytes = take(&mut rest, 4);
        let keys = take(&mut rest, 4) as u32;
        let created_ms = take(&mut rest, 6);
        let updated_ms = take(&mut rest, 6);
        // skip the lifetime and the expiry of the first key
        take(&mut rest, 12);
        let tasks_version = take(&mut rest, 6);
        let mut history = HistorySummary {
            first_seq: take(&mut rest, 6),
            next_seq: take(&mut rest, 6),
            bytes: take(&mut rest, 6),
            removed: 0,
        };
        // skips the number of events
        take(&mut rest, 4);
        if gaps_bytes > 0 {
            history.removed = take(&mut rest, GAPS_BYTES);
        }
        Ok(Self {
            flags,
            stamp: Stamp { version, life },
            kv_bytes,
            keys,
            created_ms,
            updated_ms,
            tasks_version,
            history,
        })
    }
}

pub(crate) fn history(meta: &[u8]) -> Result<HistorySummary, StoreError> {
    Ok(Meta::read(meta)?.history)
}

pub(super) fn view(reply: Value, parts: &ScopeParts<'_>) -> Result<Option<ScopeView>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let [
        packed,
        left_ms,
        now_ms,
        tasks,
        record,
        Value::Array(keys),
        Value::Array(values),
    ] = &reply[..]
    else {
        return Err(UNKNOWN);
    };
    let meta = Meta::read(bytes(packed)?)?;
    if values.len() != parts.values.len() {
        return Err(UNKNOWN);
    }
    let value = |value: &Value| match value {
        Value::Nil => Ok(None),
        value => Ok::<_, StoreError>(Some(ScopeValue::from_stored(text(value)?))),
    };
    let mut keys = keys
        .iter()
        .map(|key| Ok(ScopeKey::from_stored(text(key)?)))
        .collect::<Result<Vec<_>, StoreError>>()?;
    keys.sort_unstable();
    let expires_ms = match left_ms {
        Value::Int(-1) => None,
        left_ms => Some(integer(now_ms)? + integer(left_ms)?),
    };
    Ok(Some(ScopeView {
        stamp: meta.stamp,
        kv_bytes: meta.kv_bytes,
        key_count: meta.keys,
        created_ms: meta.created_ms,
        updated_ms: meta.updated_ms,
        expires_ms,
        is_sealed: meta.flags & SEALED != 0,
        has_segments: meta.flags & HAS_SEGMENTS != 0,
        values: values.iter().map(value).collect::<Result<_, _>>()?,
        keys,
        tasks: match tasks {
            Value::Nil => TaskList::default(),
            tasks => TaskList::from_stored(text(tasks)?).ok_or(CORRUPT)?,
        },
        tasks_stamp: Stamp {
            version: meta.tasks_version,
            life: meta.stamp.life,
        },
        record: match record {
            Value::Nil => None,
            record => Some(Bytes::copy_from_slice(bytes(record)?)),
        },
        history: meta.history,
    }))
}

pub(super) fn item_position(reply: Value) -> Result<Option<ItemPosition>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    match &array(reply)?[..] {
        [seq, is_removed] => Ok(Some(ItemPosition {
            seq: integer(seq)?,
            is_removed: is_done(is_removed)?,
        })),
        _ => Err(UNKNOWN),
    }
}

pub(super) fn item(entry: &Value) -> Result<StoredItem, StoreError> {
    let Value::Array(entry) = entry else {
        return Err(UNKNOWN);
    };
    let [entry_id, Value::Array(fields)] = &entry[..] else {
        return Err(UNKNOWN);
    };
    let [_, at, _, id, _, value] = &fields[..] else {
        return Err(CORRUPT);
    };
    let (seq, _) = text(entry_id)?.split_once('-').ok_or(UNKNOWN)?;
    stored_item(seq, at, id, value)
}

fn stored_item(seq: &str, at: &Value, id: &Value, value: &Value) -> Result<StoredItem, StoreError> {
    Ok(StoredItem {
        seq: seq.parse().map_err(|_| UNKNOWN)?,
        id: text(id)?.parse().map_err(|_| CORRUPT)?,
        at_ms: integer(at)?,
        value: Json::from_compact(text(value)?),
    })
}

/// Returns the size of the new items in bytes if the reply is the refusal `no_room`, which means that the write must
/// drop more old items than one script can.
pub(crate) fn lacks_room(reply: &Value) -> Option<u64> {
    match reply {
        Value::Array(reply) => match &reply[..] {
            [Value::BulkString(tag), Value::BulkString(code), added]
                if tag == b"R" && code == b"no_room" =>
            {
                integer(added).ok()
            }
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn written(reply: Value, write: &ScopeWrite<'_>) -> Result<ScopeWritten, WriteError> {
    let reply = accepted(array(reply)?, write.policy)?;
    let [_, replayed, packed, answers, positions, rest @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    // answers that earlier versions remembered have no removed items
    let (removed, taken) = match rest {
        [] => (0, rest),
        [removed, taken @ ..] => (integer(removed)?, taken),
    };
    let meta = Meta::read(bytes(packed)?)?;
    let answers = parts(text(answers)?).map(answer);
    let positions = parts(text(positions)?).map(appended);
    Ok(ScopeWritten {
        stamp: meta.stamp,
        kv_bytes: meta.kv_bytes,
        keys: meta.keys,
        answers: answers.collect::<Result<_, _>>()?,
        appended: positions.collect::<Result<_, _>>()?,
        removed,
        taken: taken.chunks(4).map(taken_item).collect::<Result<_, _>>()?,
        replayed: is_done(replayed)?,
    })
}

fn taken_item(item: &[Value]) -> Result<StoredItem, StoreError> {
    match item {
        [seq, at, id, value] => stored_item(text(seq)?, at, id, value),
        _ => Err(UNKNOWN),
    }
}

pub(crate) fn ended(reply: Value) -> Result<Answered<bool>, WriteError> {
    match &unless_refused(array(reply)?)?[..] {
        [_, replayed, existed] => Ok(Answered {
            answer: is_done(existed)?,
            replayed: is_done(replayed)?,
        }),
        _ => Err(UNKNOWN.into()),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').filter(|part| !part.is_empty())
}

fn answer(text: &str) -> Result<KvAnswer, StoreError> {
    Ok(match text.split_at_checked(1).ok_or(UNKNOWN)? {
        ("s", done) => KvAnswer::Set(done == "1"),
        ("d", done) => KvAnswer::Deleted(done == "1"),
        ("v", sum) => KvAnswer::Value(sum.parse().map_err(|_| UNKNOWN)?),
        ("c", _) => KvAnswer::Cleared,
        _ => return Err(UNKNOWN),
    })
}

pub(crate) fn appended(text: &str) -> Result<Appended, StoreError> {
    let (seq, repeated) = text.split_once(' ').ok_or(UNKNOWN)?;
    Ok(Appended {
        seq: seq.parse().map_err(|_| UNKNOWN)?,
        repeated: repeated == "1",
    })
}
