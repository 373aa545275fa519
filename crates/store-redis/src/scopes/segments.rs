use redis::Value;

use super::replies::{Meta, item};
use crate::transport::{UNKNOWN, array, bytes, integer, is_done, text};
use threadkeep_domain::scope::Segment;
use threadkeep_store::{HistoryPage, StoreError};

const FIELDS: usize = 8;

/// Parses segments, newest first.
pub(super) fn read(reply: Value) -> Result<Option<Vec<Segment>>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let segments = reply.chunks(FIELDS).rev().map(segment);
    segments.collect::<Result<_, _>>().map(Some)
}

fn segment(fields: &[Value]) -> Result<Segment, StoreError> {
    let [number, first, through, count, size, made, ends, ids] = fields else {
        return Err(UNKNOWN);
    };
    let ids = text(ids)?.split(' ').filter(|id| !id.is_empty());
    Ok(Segment {
        number: integer(number)? as u32,
        first_seq: integer(first)?,
        through: integer(through)?,
        count: integer(count)?,
        bytes: integer(size)?,
        compacted_ms: integer(made)?,
        expires_ms: integer(ends)?,
        summary: ids
            .map(|id| id.parse().map_err(|_| UNKNOWN))
            .collect::<Result<_, _>>()?,
    })
}

/// Parses a page of original items, which a compaction replaced. Returns `None` if the segment does not exist.
pub(super) fn page(reply: Value) -> Result<Option<HistoryPage>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let [packed, exists, Value::Array(items)] = &reply[..] else {
        return Err(UNKNOWN);
    };
    if !is_done(exists)? {
        return Ok(None);
    }
    Ok(Some(HistoryPage {
        items: items.iter().map(item).collect::<Result<_, _>>()?,
        summary: Meta::read(bytes(packed)?)?.history,
        segments: Vec::new(),
    }))
}
