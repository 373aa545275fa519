//! Formats of entries and namespaces in Redis, which must match `lua/kv/entries.lua` and `lua/kv/namespaces.lua`.

use std::time::Duration;

use bytes::Bytes;

use crate::shared::{bounded_ms, take};
use threadkeep_domain::{ContentEncoding, ContentType, Life, Lifetime, Namespace, Stamp};
use threadkeep_store::{Entry, EntryHead, IdleEnd, NamespaceRecord, NewEntry, StoreError, Usage};

const FORMAT: u64 = 1;
const USES_BYTES: usize = 18;
/// Size of an entry's head in bytes, without the content type and the encoding, but including their lengths.
const HEAD_BYTES: usize = 39;
/// Size of a namespace's record in bytes, without the idle time and end, which are optional.
const RECORD_BYTES: usize = 13;
const IDLE_BYTES: usize = 12;
const USAGE_BYTES: usize = 18;
const CORRUPT: StoreError = StoreError::Corrupt("an entry of an unknown form");
const CORRUPT_USAGE: StoreError = StoreError::Corrupt("counts of an unknown form");

pub(crate) fn entry(stored: Vec<u8>) -> Result<Entry, StoreError> {
    let stored = Bytes::from(stored);
    let (mut uses, rest) = stored.split_at_checked(USES_BYTES).ok_or(CORRUPT)?;
    let expires_ms = take(&mut uses, 6);
    let last_used_ms = take(&mut uses, 6);
    let (head, head_bytes) = read_head(rest, Some(expires_ms).filter(|ms| *ms > 0))?;
    let body = stored.slice(USES_BYTES + head_bytes..);
    if body.len() as u64 != head.size_bytes {
        return Err(CORRUPT);
    }
    Ok(Entry {
        head,
        uses: take(&mut uses, 6),
        last_used_ms,
        body,
    })
}

pub(crate) fn head(packed: &[u8], expires_ms: Option<u64>) -> Result<EntryHead, StoreError> {
    Ok(read_head(packed, expires_ms)?.0)
}

fn read_head(packed: &[u8], expires_ms: Option<u64>) -> Result<(EntryHead, usize), StoreError> {
    let (mut fixed, texts) = packed.split_at_checked(HEAD_BYTES).ok_or(CORRUPT)?;
    if take(&mut fixed, 1) != FORMAT {
        return Err(CORRUPT);
    }
    let version = take(&mut fixed, 6);
    let life = Life(take(&mut fixed, 8));
    let created_ms = take(&mut fixed, 6);
    let updated_ms = take(&mut fixed, 6);
    let lifetime = lifetime(take(&mut fixed, 6));
    let size_bytes = take(&mut fixed, 4);
    let [of_type, of_encoding] = [(); 2].map(|()| take(&mut fixed, 1) as usize);
    let (content_type, texts) = text(texts, of_type)?;
    let (content_encoding, _) = text(texts, of_encoding)?;
    let encoding = Some(content_encoding).filter(|text| !text.is_empty());
    let head = EntryHead {
        stamp: Stamp { version, life },
        size_bytes,
        content_type: ContentType::new(content_type).map_err(|_| CORRUPT)?,
        content_encoding: encoding
            .map(ContentEncoding::new)
            .transpose()
            .map_err(|_| CORRUPT)?,
        created_ms,
        updated_ms,
        lifetime,
        expires_ms,
    };
    Ok((head, HEAD_BYTES + of_type + of_encoding))
}

fn text(bytes: &[u8], len: usize) -> Result<(&str, &[u8]), StoreError> {
    let (text, rest) = bytes.split_at_checked(len).ok_or(CORRUPT)?;
    let text = std::str::from_utf8(text).map_err(|_| CORRUPT)?;
    Ok((text, rest))
}

/// Serializes an entry after a blank header, which the script fills in. Also returns the total size of the content
/// type, the encoding and their two length bytes. Each may have up to 255 bytes.
pub(crate) fn serialize(entry: &NewEntry) -> (Vec<u8>, usize) {
    let encoding = entry.content_encoding.as_ref();
    let texts = [
        entry.content_type.as_str(),
        encoding.map_or("", ContentEncoding::as_str),
    ];
    let [of_type, of_encoding] = texts.map(str::len);
    let texts_bytes = 2 + of_type + of_encoding;
    let header_bytes = USES_BYTES + HEAD_BYTES - 2;
    let mut serialized = Vec::with_capacity(header_bytes + texts_bytes + entry.body.len());
    serialized.resize(header_bytes, 0);
    serialized.extend([of_type as u8, of_encoding as u8]);
    serialized.extend(texts.iter().flat_map(|text| text.bytes()));
    serialized.extend_from_slice(&entry.body);
    (serialized, texts_bytes)
}

pub(crate) fn lifetime_ms(lifetime: Lifetime) -> u64 {
    match lifetime {
        Lifetime::Forever => 0,
        // 0 means forever, so the shortest lifetime is 1 ms
        Lifetime::For(time) => bounded_ms(time).max(1),
    }
}

fn lifetime(ms: u64) -> Lifetime {
    match ms {
        0 => Lifetime::Forever,
        ms => Lifetime::For(Duration::from_millis(ms)),
    }
}

pub(crate) fn record(namespace: &Namespace, packed: &[u8]) -> Result<NamespaceRecord, StoreError> {
    let idle_bytes = packed.len().checked_sub(RECORD_BYTES);
    if !matches!(idle_bytes, Some(0 | IDLE_BYTES)) {
        return Err(StoreError::Corrupt("a namespace of an unknown form"));
    }
    let mut rest = packed;
    let created_ms = take(&mut rest, 6);
    let has_default = take(&mut rest, 1) == 1;
    let default = lifetime(take(&mut rest, 6));
    let idle = (!rest.is_empty()).then(|| IdleEnd {
        ttl: Duration::from_millis(take(&mut rest, 6)),
        ends_ms: take(&mut rest, 6),
    });
    Ok(NamespaceRecord {
        namespace: namespace.clone(),
        created_ms,
        default_lifetime: Some(default).filter(|_| has_default),
        idle,
    })
}

pub(crate) fn usage(packed: &[u8]) -> Result<Usage, StoreError> {
    if packed.len() != USAGE_BYTES {
        return Err(CORRUPT_USAGE);
    }
    let mut rest = packed;
    Ok(Usage {
        entries: take(&mut rest, 6),
        bytes: take(&mut rest, 6),
        last_used_ms: Some(take(&mut rest, 6)).filter(|ms| *ms > 0),
    })
}

pub(crate) fn pack_usage(usage: &Usage) -> Vec<u8> {
    let numbers = [
        usage.entries,
        usage.bytes,
        usage.last_used_ms.unwrap_or_default(),
    ];
    let last_six = |number: u64| number.to_be_bytes().into_iter().skip(2);
    numbers.into_iter().flat_map(last_six).collect()
}
