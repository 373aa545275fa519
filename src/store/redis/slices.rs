//! Parts of arrays.

use bytes::Bytes;
use redis::Value;

use super::elements::{Header, cut, ordinal, write_plain};
use super::meta::Meta;
use super::replies::{UNKNOWN, bytes, integer};
use crate::domain::Slice;
use crate::domain::array::close_array;
use crate::store::{Found, Part, StoreError};

/// The reply of the script that reads a part of an array.
pub(super) fn part(reply: &Value, slice: Slice) -> Result<Option<Found<Option<Part>>>, StoreError> {
    let Value::Array(reply) = reply else {
        return Ok(None);
    };
    let (packed, rest) = reply.split_first().ok_or(UNKNOWN)?;
    let content = match rest {
        [] => None,
        [text] => Some(plain(bytes(text)?, slice)),
        [header, from, to, chunks @ ..] => {
            let header = Header::read(bytes(header)?)?;
            let json = chunked(&header, integer(from)?, integer(to)?, chunks)?;
            Some(Part {
                json,
                total: Some(header.len()),
            })
        }
        _ => return Err(UNKNOWN),
    };
    Ok(Some(Found {
        stamp: Meta::read(bytes(packed)?)?.stamp,
        content,
    }))
}

/// A part of an array of one field; something else than an array as it is.
fn plain(text: &[u8], slice: Slice) -> Part {
    let Some(elements) = text.strip_prefix(b"[") else {
        return Part {
            json: Bytes::copy_from_slice(text),
            total: None,
        };
    };
    if elements == b"]" {
        return Part {
            json: Bytes::copy_from_slice(text),
            total: Some(0),
        };
    }
    let total = memchr::memchr_iter(b'\n', elements).count() as u64;
    let (from, count) = slice.of(total);
    let mut out = b"[".to_vec();
    out.extend_from_slice(cut(elements, from, count));
    let mut json = Vec::with_capacity(out.len() + 1);
    if count == 0 {
        json.extend_from_slice(b"[]");
    } else {
        write_plain(&out, &mut json);
    }
    Part {
        json: json.into(),
        total: Some(total),
    }
}

/// The elements with these ordinals, from the number of a chunk and the chunks from there on.
fn chunked(header: &Header, from: u64, to: u64, parts: &[Value]) -> Result<Bytes, StoreError> {
    let mut elements = Vec::new();
    let mut first = header.first;
    if let [low, chunks @ ..] = parts {
        let low = integer(low)?;
        for (place, chunk) in chunks.iter().enumerate() {
            let chunk = bytes(chunk)?;
            let is_head = low == header.head && place == 0;
            if place == 0 && !is_head {
                first = ordinal(chunk)?;
            }
            elements.extend_from_slice(header.elements(chunk, is_head)?);
        }
    }
    let mut json = cut(&elements, from - first, to - from).to_vec();
    close_array(0, &mut json);
    Ok(json.into())
}
