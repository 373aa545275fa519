//! Chunked arrays, and parts of arrays.

use bytes::Bytes;
use redis::Value;

use super::meta::Meta;
use super::replies::{UNKNOWN, bytes, integer};
use super::state::write_plain;
use crate::domain::Slice;
use crate::domain::array::close_array;
use crate::store::{Found, Part, StoreError};

const HEADER_BYTES: usize = 41;
const CORRUPT: StoreError = StoreError::Corrupt("a chunk of an unknown form");

/// The header of a chunked array, as `lua/prelude.lua` lays it out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    id: u64,
    pub(super) head: u64,
    pub(super) tail: u64,
    first: u64,
    next: u64,
    /// Where in the head chunk the elements that are left begin.
    skip: usize,
    /// Of all elements with their separators.
    pub(super) bytes: usize,
}

impl Header {
    pub(super) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        if packed.len() != HEADER_BYTES || packed[0] != b'A' {
            return Err(StoreError::Corrupt("an array header of an unknown form"));
        }
        let number = |from: usize, to: usize| {
            packed[from..to]
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Ok(Self {
            id: number(1, 5),
            head: number(5, 11),
            tail: number(11, 17),
            first: number(17, 23),
            next: number(23, 29),
            skip: number(29, 33) as usize,
            bytes: number(37, 41) as usize,
        })
    }

    pub(super) fn chunk_name(&self, number: u64) -> String {
        format!("c{}:{number}", self.id)
    }

    /// The elements of a chunk, each with a line feed before it, without those that were cut.
    pub(super) fn elements<'a>(
        &self,
        chunk: &'a [u8],
        is_head: bool,
    ) -> Result<&'a [u8], StoreError> {
        let from = if is_head {
            self.skip
        } else {
            memchr::memchr(b'\n', chunk).ok_or(CORRUPT)?
        };
        chunk.get(from..).ok_or(CORRUPT)
    }
}

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
                total: Some(header.next - header.first),
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

fn ordinal(chunk: &[u8]) -> Result<u64, StoreError> {
    let end = memchr::memchr(b'\n', chunk).ok_or(CORRUPT)?;
    std::str::from_utf8(&chunk[..end])
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(CORRUPT)
}

/// So many elements from the one of that number on, each with a line feed before it.
fn cut(elements: &[u8], from: u64, count: u64) -> &[u8] {
    let border = |number: u64| {
        memchr::memchr_iter(b'\n', elements)
            .nth(usize::try_from(number).unwrap_or(usize::MAX))
            .unwrap_or(elements.len())
    };
    &elements[border(from)..border(from.saturating_add(count))]
}
