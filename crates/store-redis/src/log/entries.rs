//! Parses events in the streams, which `lua/log/log.lua` writes.

use redis::Value;

use crate::shared::{take, unpack_id};
use crate::transport::{UNKNOWN, array, bytes, text};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Completed, EndReason, Event, EventId, EventKind, Json, Key, Life, Origin, Position, ThreadId,
    TraceParent,
};
use threadkeep_store::StoreError;

const HEADER_BYTES: usize = 26;
const FIRST_LIFE: u8 = 10;
const FIRST_LIFE_HEADER_BYTES: usize = 10;
const CORRUPT: StoreError = StoreError::Corrupt("an event of an unknown form");

pub(super) struct Page {
    pub(super) events: Vec<Event>,
    pub(crate) unreadable: Vec<Position>,
    /// Number of entries, including unreadable entries.
    pub(crate) count: usize,
    pub(crate) last: Option<Position>,
}

pub(super) fn events(bucket: u16, entries: Value) -> Result<Page, StoreError> {
    let entries = array(entries)?;
    let mut page = Page {
        events: Vec::with_capacity(entries.len()),
        unreadable: Vec::new(),
        count: entries.len(),
        last: None,
    };
    for entry in entries {
        let id = match &entry {
            Value::Array(entry) => entry.first().ok_or(UNKNOWN)?,
            _ => return Err(UNKNOWN),
        };
        let position = position(text(id)?)?;
        page.last = Some(position);
        match event(bucket, entry) {
            Ok(event) => page.events.push(event),
            Err(_) => page.unreadable.push(position),
        }
    }
    Ok(page)
}

fn event(bucket: u16, entry: Value) -> Result<Event, StoreError> {
    let entry = array(entry)?;
    let [id, Value::Array(fields)] = &entry[..] else {
        return Err(CORRUPT);
    };
    let [_, packed, name, more] = &fields[..] else {
        return Err(CORRUPT);
    };
    // In the field name, the trace follows the letter `k`. An event with an unreadable trace is returned without it.
    let trace = text(name)?.get(1..).and_then(|trace| trace.parse().ok());
    let (packed, more) = (bytes(packed)?, text(more)?);
    let position = position(text(id)?)?;
    if packed.first() == Some(&FIRST_LIFE) {
        return first_life(EventId { bucket, position }, packed, more, trace);
    }
    let (header, subject) = packed.split_at_checked(HEADER_BYTES).ok_or(CORRUPT)?;
    let mut rest = header;
    let (kind, flags) = (take(&mut rest, 1), take(&mut rest, 1));
    let time_ms = take(&mut rest, 6);
    let version = take(&mut rest, 6);
    let sequence = take(&mut rest, 4);
    let life = Life(take(&mut rest, 8));
    let subject = std::str::from_utf8(subject).map_err(|_| CORRUPT)?;
    Ok(Event {
        id: EventId { bucket, position },
        subject: match subject.parse::<ThreadId>() {
            Ok(id) => ScopeId::Thread(id),
            Err(_) => subject.parse().map_err(|_| CORRUPT)?,
        },
        time_ms,
        life,
        version,
        sequence,
        trace: trace.map(Box::new),
        kind: match (kind, flags) {
            (1, flags) => EventKind::Created {
                keys: names(more)?,
                restored: flags == 1,
            },
            (2, flags) => EventKind::Updated {
                keys: names(more)?,
                metadata: flags == 1,
            },
            (3, flags) => EventKind::Destroyed {
                reason: match flags {
                    1 => EndReason::Destroyed,
                    3 => EndReason::Erased,
                    _ => EndReason::Expired,
                },
                state_lost: flags == 2,
            },
            (4, _) => EventKind::Completed(read_completed(more)?),
            (5, _) => EventKind::KvUpdated {
                keys: scope_keys(more)?,
            },
            (6, _) => EventKind::TaskListUpdated,
            (7, _) => {
                let (first, last) = more.split_once(' ').ok_or(CORRUPT)?;
                EventKind::HistoryAppended {
                    first_seq: first.parse().map_err(|_| CORRUPT)?,
                    last_seq: last.parse().map_err(|_| CORRUPT)?,
                }
            }
            (8, _) => EventKind::Rotated {
                to: more.parse().map_err(|_| CORRUPT)?,
            },
            (9, _) => EventKind::Forked {
                origin: Box::new(read_origin(more)?),
            },
            _ => return Err(CORRUPT),
        },
    })
}

/// Parses the creation of the first thread with an id: see `log_first_life` in `lua/log/log.lua`.
fn first_life(
    id: EventId,
    packed: &[u8],
    keys: &str,
    trace: Option<TraceParent>,
) -> Result<Event, StoreError> {
    let (header, thread) = packed
        .split_at_checked(FIRST_LIFE_HEADER_BYTES)
        .ok_or(CORRUPT)?;
    Ok(Event {
        subject: ScopeId::Thread(unpack_id(thread).map_err(|_| CORRUPT)?),
        time_ms: id.position.ms,
        life: Life(take(&mut &header[2..], 8)),
        version: 1,
        sequence: 1,
        trace: trace.map(Box::new),
        kind: EventKind::Created {
            keys: names(keys)?,
            restored: false,
        },
        id,
    })
}

pub(crate) fn position(text: &str) -> Result<Position, StoreError> {
    let (ms, seq) = text.split_once('-').ok_or(CORRUPT)?;
    Ok(Position {
        ms: ms.parse().map_err(|_| CORRUPT)?,
        seq: seq.parse().map_err(|_| CORRUPT)?,
    })
}

/// Returns the newest position of a log: the last entry's position or the horizon, whichever is later. Both may be nil.
pub(crate) fn newest(last: &Value, horizon: &Value) -> Result<Position, StoreError> {
    Ok(position_or_lowest(last)?.max(position_or_lowest(horizon)?))
}

/// Parses a position. Nil is the lowest position.
pub(crate) fn position_or_lowest(value: &Value) -> Result<Position, StoreError> {
    match value {
        Value::Nil => Ok(Position::default()),
        value => position(text(value)?),
    }
}

pub(super) fn write_completed(completed: &Completed) -> String {
    let Completed {
        session,
        status,
        duration_ms,
    } = completed;
    format!("{status} {duration_ms} {session}")
}

fn read_completed(text: &str) -> Result<Completed, StoreError> {
    let mut parts = text.splitn(3, ' ');
    let mut next = || parts.next().ok_or(CORRUPT);
    Ok(Completed {
        status: next()?.parse().map_err(|_| CORRUPT)?,
        duration_ms: next()?.parse().map_err(|_| CORRUPT)?,
        session: next()?.to_owned(),
    })
}

fn read_origin(text: &str) -> Result<Origin, StoreError> {
    let (id, version) = text.split_once(' ').ok_or(CORRUPT)?;
    Ok(Origin {
        id: id.parse().map_err(|_| CORRUPT)?,
        version: version.parse().map_err(|_| CORRUPT)?,
    })
}

/// Returns the keys as a JSON array in byte order. The script does not sort the keys.
fn names(fields: &str) -> Result<Option<Json>, StoreError> {
    if fields == "!" {
        return Ok(None);
    }
    let list = Json::from_compact(format!("[{fields}]"));
    let keys = threadkeep_domain::elements(list.as_str()).map(Key::any_from_json);
    let mut keys: Vec<Key> = keys.collect::<Result<_, _>>().map_err(|_| UNKNOWN)?;
    keys.sort_unstable();
    let mut sorted = vec![b'['];
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            sorted.push(b',');
        }
        key.write_json(&mut sorted);
    }
    sorted.push(b']');
    let sorted = String::from_utf8(sorted).map_err(|_| CORRUPT)?;
    Ok(Some(Json::from_compact(sorted)))
}

fn scope_keys(list: &str) -> Result<Option<Json>, StoreError> {
    if list == "!" {
        return Ok(None);
    }
    let keys = serde_json::from_str::<Vec<String>>(&format!("[{list}]"));
    let mut keys = keys.map_err(|_| CORRUPT)?;
    keys.sort_unstable();
    Ok(Some(Json::from_strings(&keys)))
}
