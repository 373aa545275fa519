use bytes::Bytes;
use redis::Value;

use crate::shared::{Header, Meta, cut, ordinal};
use crate::transport::{UNKNOWN, bytes, integer};
use threadkeep_domain::{Slice, close_array};
use threadkeep_store::{Found, Part, StoreError};

const CORRUPT: StoreError = StoreError::Corrupt("a part of an array that it does not have");

pub(crate) fn part(reply: &Value, slice: Slice) -> Result<Option<Found<Option<Part>>>, StoreError> {
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

/// Returns the requested slice of an array that is stored in one field. Returns a value that is not an array unchanged.
fn plain(text: &[u8], slice: Slice) -> Part {
    let Some(elements) = text.strip_prefix(b"[") else {
        return Part {
            json: Bytes::copy_from_slice(text),
            total: None,
        };
    };
    // only an empty array is stored with its closing bracket; otherwise, a final bracket belongs to an element
    let elements = if elements == b"]" { b"" } else { elements };
    let total = memchr::memchr_iter(b'\n', elements).count() as u64;
    let (from, count) = slice.of(total);
    Part {
        json: cut_array(elements, from, count),
        total: Some(total),
    }
}

/// Returns the elements `from` to `to - 1`. `parts` contains the index of the first chunk, followed by the chunks.
fn chunked(header: &Header, from: u64, to: u64, parts: &[Value]) -> Result<Bytes, StoreError> {
    let mut elements = Vec::new();
    let mut first = header.first;
    if let [low, chunks @ ..] = parts {
        let low = integer(low)?;
        for (index, chunk) in chunks.iter().enumerate() {
            let chunk = bytes(chunk)?;
            let is_head = low == header.head && index == 0;
            if index == 0 && !is_head {
                first = ordinal(chunk)?;
            }
            elements.extend_from_slice(header.elements(chunk, is_head)?);
        }
    }
    let (from, count) = from
        .checked_sub(first)
        .zip(to.checked_sub(from))
        .ok_or(CORRUPT)?;
    Ok(cut_array(&elements, from, count))
}

fn cut_array(elements: &[u8], from: u64, count: u64) -> Bytes {
    let mut json = cut(elements, from, count).to_vec();
    close_array(0, &mut json);
    json.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_small_array_is_cut_between_its_elements() {
        let part = |text: &str, count| {
            let part = plain(text.as_bytes(), Slice::Tail(count));
            (String::from_utf8(part.json.to_vec()).unwrap(), part.total)
        };

        assert_eq!(part("[]", 3), ("[]".into(), Some(0)));
        assert_eq!(part("[\n1\n[2]", 3), ("[1,[2]]".into(), Some(2)));
        assert_eq!(part("[\n1\n[2]", 1), ("[[2]]".into(), Some(2)));
        assert_eq!(part("[\n1\n[2]", 0), ("[]".into(), Some(2)));
        assert_eq!(part("{\"a\":[1]}", 1), ("{\"a\":[1]}".into(), None));
    }
}
