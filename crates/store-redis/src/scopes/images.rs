use std::borrow::Cow;
use std::collections::HashMap;
use std::iter;

use redis::Value;

use super::replies::{self, GAPS_BYTES, Meta};
use crate::shared::{put, take};
use crate::transport::{Field, UNKNOWN};
use threadkeep_domain::scope::{
    HistorySummary, KeyImage, ScopeImage, ScopeKey, ScopeValue, StoredItem, TaskList,
};
use threadkeep_store::StoreError;

const CORRUPT: StoreError = StoreError::Corrupt("a scope of an unknown form");
const TIME_BYTES: usize = 6;

/// Builds a scope from its fields and from `items_read`, which may be nil. Also returns a summary of the history.
pub(crate) fn read(
    meta: &[u8],
    fields: &[Field<'_>],
    items_read: &Value,
) -> Result<(ScopeImage, HistorySummary), StoreError> {
    let meta = Meta::read(meta)?;
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| CORRUPT);
    let ends: HashMap<&[u8], &[u8]> = fields
        .iter()
        .filter_map(|(field, value)| Some((field.strip_prefix(b"x")?, *value)))
        .collect();
    let mut keys = Vec::new();
    let mut tasks = TaskList::default();
    for (field, value) in fields {
        match field.split_first() {
            Some((b'k', key)) => keys.push(KeyImage {
                key: ScopeKey::from_stored(text(key)?),
                value: ScopeValue::from_stored(text(value)?),
                expires_ms: match ends.get(key).copied() {
                    Some(mut time) if time.len() == TIME_BYTES => Some(take(&mut time, TIME_BYTES)),
                    Some(_) => return Err(CORRUPT),
                    None => None,
                },
            }),
            Some((b'T', [])) => tasks = TaskList::from_stored(text(value)?).ok_or(CORRUPT)?,
            _ => {}
        }
    }
    keys.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    let image = ScopeImage {
        version: meta.stamp.version,
        created_ms: meta.created_ms,
        updated_ms: meta.updated_ms,
        keys,
        tasks,
        tasks_version: meta.tasks_version,
        next_seq: meta.history.next_seq,
        items: match items_read {
            Value::Nil => Vec::new(),
            items_read => items(items_read)?,
        },
    };
    Ok((image, meta.history))
}

pub(crate) fn items(reply: &Value) -> Result<Vec<StoredItem>, StoreError> {
    match reply {
        Value::Array(items) => items.iter().map(replies::item).collect(),
        _ => Err(UNKNOWN),
    }
}

/// Packs the field `M` without the life.
pub(crate) fn meta(scope: &ScopeImage) -> Vec<u8> {
    let history = scope.history();
    let due_ms = scope.keys.iter().filter_map(|key| key.expires_ms).min();
    let mut packed = Vec::with_capacity(80);
    for (number, bytes) in [
        (0, 1),
        (scope.version, 6),
        (scope.kv_bytes(), 4),
        (scope.keys.len() as u64, 4),
        (scope.created_ms, 6),
        (scope.updated_ms, 6),
        (0, 6),
        (due_ms.unwrap_or_default(), 6),
        (scope.tasks_version, 6),
        (history.first_seq, 6),
        (history.next_seq, 6),
        (history.bytes, 6),
        (0, 4),
    ] {
        put(&mut packed, number, bytes);
    }
    if history.removed > 0 {
        put(&mut packed, history.removed, GAPS_BYTES);
    }
    packed
}

pub(crate) fn fields(scope: &ScopeImage) -> impl Iterator<Item = (Vec<u8>, Cow<'_, [u8]>)> {
    let keys = scope.keys.iter().flat_map(|entry| {
        let name = |kind: &str| [kind, entry.key.as_str()].concat().into_bytes();
        let value = (name("k"), Cow::Borrowed(entry.value.as_str().as_bytes()));
        let end = entry.expires_ms.map(|ms| {
            let mut time = Vec::with_capacity(TIME_BYTES);
            put(&mut time, ms, TIME_BYTES);
            (name("x"), Cow::Owned(time))
        });
        iter::once(value).chain(end)
    });
    let tasks = (scope.tasks_version > 0).then(|| {
        let tasks = scope.tasks.to_json().into_bytes();
        (b"T".to_vec(), Cow::Owned(tasks))
    });
    keys.chain(tasks)
}

/// Returns an item as arguments for the scripts: position, time, id, value, and its entry in the hash of ids.
pub(crate) fn item(item: &StoredItem) -> [Cow<'_, [u8]>; 5] {
    let number = |number: u64| Cow::Owned(number.to_string().into_bytes());
    let mut id_entry = Vec::with_capacity(22);
    put(&mut id_entry, item.seq, 6);
    id_entry.extend_from_slice(&item.fingerprint().0);
    [
        number(item.seq),
        number(item.at_ms),
        Cow::Borrowed(item.id.as_str().as_bytes()),
        Cow::Borrowed(item.value.as_str().as_bytes()),
        Cow::Owned(id_entry),
    ]
}
