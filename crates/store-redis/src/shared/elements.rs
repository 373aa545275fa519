use super::put;
use crate::shared::take;
use threadkeep_domain::{Array, close_array};
use threadkeep_store::StoreError;

const HEADER_BYTES: usize = 41;
const CORRUPT_HEADER: StoreError = StoreError::Corrupt("an array header of an unknown form");
const CORRUPT: StoreError = StoreError::Corrupt("a chunk of an unknown form");

#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    id: u64,
    pub(crate) head: u64,
    pub(crate) tail: u64,
    pub(crate) first: u64,
    next: u64,
    /// Number of bytes in the head chunk (the first chunk) before its first remaining element.
    skip: usize,
    /// Total size of the elements, including their separators.
    pub(crate) bytes: usize,
}

impl Header {
    pub(crate) fn read(packed: &[u8]) -> Result<Self, StoreError> {
        if packed.len() != HEADER_BYTES || packed[0] != b'A' {
            return Err(CORRUPT_HEADER);
        }
        let mut rest = &packed[1..];
        let id = take(&mut rest, 4);
        let [head, tail, first, next] = [(); 4].map(|()| take(&mut rest, 6));
        // skips the second number, the size of the tail chunk, because only the scripts need it
        let [skip, _, bytes] = [(); 3].map(|()| take(&mut rest, 4) as usize);
        if head > tail || first > next {
            return Err(CORRUPT_HEADER);
        }
        Ok(Self {
            id,
            head,
            tail,
            first,
            next,
            skip,
            bytes,
        })
    }

    /// Packs the header of a new array with chunks 0 to `tail`. `tail_bytes` is the size of the last chunk.
    pub(crate) fn of(array: &Array, id: u64, tail: u64, tail_bytes: usize) -> Vec<u8> {
        let mut packed = vec![b'A'];
        for (number, bytes) in [
            (id, 4),
            (0, 6),
            (tail, 6),
            (0, 6),
            (array.len() as u64, 6),
            (1, 4),
            (tail_bytes as u64, 4),
            (array.json_bytes() as u64 - 1, 4),
        ] {
            put(&mut packed, number, bytes);
        }
        packed
    }

    pub(crate) fn len(&self) -> u64 {
        self.next - self.first
    }

    pub(super) fn chunk_name(&self, number: u64) -> String {
        format!("c{}:{number}", self.id)
    }

    /// Returns the remaining elements of a chunk, each preceded by a line feed.
    pub(crate) fn elements<'a>(
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

pub(super) fn write_chunks<'a>(
    header: &Header,
    chunks: impl Iterator<Item = Result<&'a [u8], StoreError>>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let start = out.len();
    for (index, chunk) in chunks.enumerate() {
        out.extend_from_slice(header.elements(chunk?, index == 0)?);
    }
    close_array(start, out);
    Ok(())
}

/// Appends the content of a field to `out` as JSON. Converts the stored form of an array, and copies any other value.
pub(crate) fn write_plain(text: &[u8], out: &mut Vec<u8>) {
    match text.strip_prefix(b"[") {
        Some(elements) if elements.first() == Some(&b'\n') => {
            let start = out.len();
            out.extend_from_slice(elements);
            close_array(start, out);
        }
        _ => out.extend_from_slice(text),
    }
}

pub(crate) fn ordinal(chunk: &[u8]) -> Result<u64, StoreError> {
    let end = memchr::memchr(b'\n', chunk).ok_or(CORRUPT)?;
    std::str::from_utf8(&chunk[..end])
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(CORRUPT)
}

/// Returns `count` elements starting at index `from`, each preceded by a line feed.
pub(crate) fn cut(elements: &[u8], from: u64, count: u64) -> &[u8] {
    let border = |number: u64| {
        memchr::memchr_iter(b'\n', elements)
            .nth(usize::try_from(number).unwrap_or(usize::MAX))
            .unwrap_or(elements.len())
    };
    &elements[border(from)..border(from.saturating_add(count))]
}
