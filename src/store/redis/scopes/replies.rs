//! What the scripts of scopes answer.

use bytes::Bytes;
use redis::Value;

use crate::domain::scope::{
    Appended, HistorySummary, KV_MAX_BYTES, KV_MAX_KEYS, Kept, KvAnswer, ScopeKey, ScopeRefusal,
    ScopeValue, ScopeWrite, ScopeWritten, TaskList,
};
use crate::domain::{Json, Life, Stamp};
use crate::store::redis::threads::meta::take;
use crate::store::redis::threads::replies::{UNKNOWN, array, bytes, integer, is_done, text};
use crate::store::{ScopeParts, ScopeView, ScopeWriteError, StoreError};

const META_BYTES: usize = 75;
const SEALED: u64 = 1;
const CORRUPT: StoreError = StoreError::Corrupt("a scope of an unknown form");

/// What the field `M` of a scope says.
struct Meta {
    flags: u64,
    stamp: Stamp,
    kv_bytes: u64,
    keys: u32,
    created_ms: u64,
    updated_ms: u64,
    tasks_version: u64,
    history: HistorySummary,
}

impl Meta {
    fn read(packed: &[u8]) -> Result<Self, StoreError> {
        if packed.len() != META_BYTES {
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
        // how long it lives, and when the first key's time passes
        take(&mut rest, 12);
        let tasks_version = take(&mut rest, 6);
        let history = HistorySummary {
            first_seq: take(&mut rest, 6),
            next_seq: take(&mut rest, 6),
            bytes: take(&mut rest, 6),
        };
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

/// What the field `M` says of the history.
pub(crate) fn history(meta: &[u8]) -> Result<HistorySummary, StoreError> {
    Ok(Meta::read(meta)?.history)
}

/// A scope as it was read; none: there is none.
pub(super) fn view(reply: Value, parts: &ScopeParts<'_>) -> Result<Option<ScopeView>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let [
        packed,
        left,
        now,
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
    let expires_ms = match left {
        Value::Int(-1) => None,
        left => Some(integer(now)? + integer(left)?),
    };
    Ok(Some(ScopeView {
        stamp: meta.stamp,
        kv_bytes: meta.kv_bytes,
        key_count: meta.keys,
        created_ms: meta.created_ms,
        updated_ms: meta.updated_ms,
        expires_ms,
        is_sealed: meta.flags & SEALED != 0,
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

/// An entry of a history's stream.
pub(super) fn item(entry: &Value) -> Result<Kept, StoreError> {
    let Value::Array(entry) = entry else {
        return Err(UNKNOWN);
    };
    let [place, Value::Array(fields)] = &entry[..] else {
        return Err(UNKNOWN);
    };
    let [_, at, _, id, _, value] = &fields[..] else {
        return Err(CORRUPT);
    };
    let (seq, _) = text(place)?.split_once('-').ok_or(UNKNOWN)?;
    Ok(Kept {
        seq: seq.parse().map_err(|_| UNKNOWN)?,
        id: text(id)?.parse().map_err(|_| CORRUPT)?,
        at_ms: integer(at)?,
        value: Json::from_compact(text(value)?),
    })
}

/// Bytes of the items of a write that was not done, since more of the oldest items have to go than one
/// script drops.
pub(super) fn lacks_room(reply: &Value) -> Option<u64> {
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

/// The reply of the script that writes.
pub(crate) fn written(
    reply: Value,
    write: &ScopeWrite<'_>,
) -> Result<ScopeWritten, ScopeWriteError> {
    let reply = accepted(array(reply)?, write)?;
    let [_, replayed, packed, answers, places] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let meta = Meta::read(bytes(packed)?)?;
    let answers = parts(text(answers)?).map(answer);
    let places = parts(text(places)?).map(place);
    Ok(ScopeWritten {
        stamp: meta.stamp,
        kv_bytes: meta.kv_bytes,
        keys: meta.keys,
        answers: answers.collect::<Result<_, _>>()?,
        appended: places.collect::<Result<_, _>>()?,
        replayed: is_done(replayed)?,
    })
}

/// The reply of the script that ends a scope.
pub(crate) fn ended(reply: Value) -> Result<bool, ScopeWriteError> {
    let reply = array(reply)?;
    if let [Value::BulkString(tag), _, version, life] = &reply[..]
        && tag == b"R"
    {
        let current = stamp(version, life)?;
        return Err(ScopeRefusal::VersionMismatch { current }.into());
    }
    match &reply[..] {
        [_, was_there] => Ok(is_done(was_there)?),
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

fn place(text: &str) -> Result<Appended, StoreError> {
    let (seq, repeated) = text.split_once(' ').ok_or(UNKNOWN)?;
    Ok(Appended {
        seq: seq.parse().map_err(|_| UNKNOWN)?,
        repeated: repeated == "1",
    })
}

fn stamp(version: &Value, life: &Value) -> Result<Stamp, StoreError> {
    let life: [u8; 8] = bytes(life)?.try_into().map_err(|_| UNKNOWN)?;
    Ok(Stamp {
        version: integer(version)?,
        life: Life(u64::from_be_bytes(life)),
    })
}

/// The reply, unless it is a refusal.
fn accepted(reply: Vec<Value>, write: &ScopeWrite<'_>) -> Result<Vec<Value>, ScopeWriteError> {
    let [Value::BulkString(tag), code, details @ ..] = &reply[..] else {
        return Ok(reply);
    };
    if tag != b"R" {
        return Ok(reply);
    }
    let detail = |place: usize| details.get(place).ok_or(UNKNOWN).and_then(integer);
    let index = || detail(0).map(|index| index as usize);
    Err(ScopeWriteError::Refused(match text(code)? {
        "not_found" => ScopeRefusal::NotFound,
        "sealed" => ScopeRefusal::Sealed,
        "exists" => ScopeRefusal::Exists,
        "no_thread" => ScopeRefusal::NoThread,
        "changed" => ScopeRefusal::Changed,
        "version_mismatch" => match details {
            [version, life] => ScopeRefusal::VersionMismatch {
                current: stamp(version, life)?,
            },
            _ => return Err(UNKNOWN.into()),
        },
        "not_an_integer" => ScopeRefusal::NotAnInteger {
            operation: index()?,
        },
        "integer_overflow" => ScopeRefusal::IntegerOverflow {
            operation: index()?,
        },
        "kv_too_large" => ScopeRefusal::KvTooLarge {
            limit_bytes: KV_MAX_BYTES,
            attempted_bytes: detail(0)?,
        },
        "too_many_keys" => ScopeRefusal::TooManyKeys {
            limit_keys: KV_MAX_KEYS,
        },
        "history_too_large" => ScopeRefusal::HistoryTooLarge {
            limit_bytes: write.policy.history.max_bytes,
            attempted_bytes: detail(0)?,
            size_bytes: detail(1)?,
        },
        "item_id_reused" => ScopeRefusal::ItemIdReused { item: index()? },
        "idempotency_key_reused" => ScopeRefusal::IdempotencyKeyReused,
        "too_many_idempotency_keys" => ScopeRefusal::TooManyIdempotencyKeys {
            retry_after_ms: detail(0)?,
        },
        _ => return Err(UNKNOWN.into()),
    }))
}
