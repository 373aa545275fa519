use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use redis::Value;

use crate::shared::take;
use crate::transport::{Field, UNKNOWN, array, bytes, integer, text};
use crate::unless_refused;
use threadkeep_domain::{Fingerprint, ResponseId, TurnToken};
use threadkeep_store::{Begun, Journal, ResponseView, StoreError, WriteError};

const META_BYTES: usize = 67;
const TURN_BYTES: usize = 23;
const CORRUPT: StoreError = StoreError::Corrupt("a response of an unknown form");

pub(super) struct Meta {
    pub(super) has_ended: bool,
    lease_ms: u64,
    entries: u64,
    pub(super) next_event: u64,
}

impl Meta {
    pub(super) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        if packed.len() != META_BYTES {
            return Err(CORRUPT);
        }
        let mut rest = packed;
        let has_ended = take(&mut rest, 1) == 1;
        rest = &rest[size_of::<TurnToken>()..];
        let lease_ms = take(&mut rest, 6);
        rest = &rest[size_of::<TurnToken>()..];
        Ok(Self {
            has_ended,
            lease_ms,
            entries: take(&mut rest, 4),
            next_event: take(&mut rest, 4),
        })
    }
}

/// Parses a reply of `begin.lua`. Returns `None` if the response exists; the caller must then read its journal.
pub(super) fn begun(reply: Value) -> Result<Option<Begun>, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let (tag, details) = reply.split_first().ok_or(UNKNOWN)?;
    let millis = |value| integer(value).map(Duration::from_millis);
    Ok(Some(match (bytes(tag)?, details) {
        (b"N", []) => Begun::New,
        (b"A", []) => Begun::Free,
        (b"T", []) => return Ok(None),
        (b"L", [left]) => Begun::Running {
            left: millis(left)?,
        },
        (b"F", [left, by]) => Begun::Locked {
            by: match text(by)? {
                "" => None,
                by => Some(id(by)?),
            },
            left: millis(left)?,
        },
        (b"B", [first]) => Begun::Behind(id(text(first)?)?),
        _ => return Err(UNKNOWN.into()),
    }))
}

pub(super) fn earlier(reply: &Value) -> Result<Option<Bytes>, StoreError> {
    match reply {
        Value::Array(parts) => match &parts[..] {
            [Value::BulkString(tag), outcome] if tag == b"J" => owned(outcome).map(Some),
            _ => Ok(None),
        },
        _ => Err(UNKNOWN),
    }
}

pub(super) fn done(reply: Value) -> Result<(), WriteError> {
    match &unless_refused(array(reply)?)?[..] {
        [Value::BulkString(tag)] if tag == b"K" => Ok(()),
        _ => Err(UNKNOWN.into()),
    }
}

pub(super) fn view(
    fields: Vec<Field<'_>>,
    now_ms: u64,
) -> Result<Option<ResponseView>, StoreError> {
    let by_name: HashMap<_, _> = fields.into_iter().collect();
    let field = |name: &[u8]| by_name.get(name).copied();
    let copied = |name: &[u8]| field(name).map(Bytes::copy_from_slice).ok_or(CORRUPT);
    let Some(meta) = field(b"M") else {
        return Ok(None);
    };
    let meta = Meta::read(meta)?;
    let scope = field(b"S").and_then(|scope| std::str::from_utf8(scope).ok());
    let entry = |number: u64| copied(number.to_string().as_bytes());
    let fingerprint = field(b"P").and_then(|print| print.try_into().ok());
    let left_ms = meta.lease_ms.saturating_sub(now_ms);
    Ok(Some(ResponseView {
        scope: scope.and_then(|scope| scope.parse().ok()).ok_or(CORRUPT)?,
        journal: Journal {
            request: copied(b"Q")?,
            entries: (1..=meta.entries).map(entry).collect::<Result<_, _>>()?,
            next_event: meta.next_event,
        },
        driven: (!meta.has_ended && left_ms > 0).then(|| Duration::from_millis(left_ms)),
        answer: meta.has_ended.then(|| copied(b"R")).transpose()?,
        fingerprint: fingerprint.map(Fingerprint).ok_or(CORRUPT)?,
        is_delivered: field(b"D").is_some(),
    }))
}

pub(super) fn last_response(turn: &[u8]) -> Result<Option<ResponseId>, StoreError> {
    match turn.get(TURN_BYTES..) {
        None | Some([]) => Ok(None),
        Some(id) => {
            let text = std::str::from_utf8(id).map_err(|_| UNKNOWN)?;
            self::id(text).map(Some)
        }
    }
}

pub(super) fn ids(reply: Value) -> Result<Vec<ResponseId>, StoreError> {
    array(reply)?.iter().map(|value| id(text(value)?)).collect()
}

pub(super) fn event(entry: &Value) -> Result<Bytes, StoreError> {
    let Value::Array(entry) = entry else {
        return Err(UNKNOWN);
    };
    match &entry[..] {
        [_, Value::Array(fields)] => match &fields[..] {
            [_, event] => owned(event),
            _ => Err(UNKNOWN),
        },
        _ => Err(UNKNOWN),
    }
}

fn owned(value: &Value) -> Result<Bytes, StoreError> {
    bytes(value).map(Bytes::copy_from_slice)
}

fn id(text: &str) -> Result<ResponseId, StoreError> {
    text.parse().map_err(|_| UNKNOWN)
}
