use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use redis::Value;

use super::{Header, write_chunks, write_plain};
use crate::shared::Meta;
use crate::transport::{Field, UNKNOWN, bytes};
use threadkeep_domain::{Json, Key, Owner};
use threadkeep_store::{Found, StoreError, Whole};

/// Assembles a state from its fields. Returns `None` if the fields do not belong to a thread. Fails if the size of the
/// state differs from the size in the meta.
pub(crate) fn assemble(fields: &[Field<'_>]) -> Result<Option<(Meta, Bytes)>, StoreError> {
    let mut meta = None;
    let mut members = Vec::with_capacity(fields.len());
    let mut chunks = HashMap::new();
    for &(field, value) in fields {
        match field.first() {
            Some(b'"') => members.push((sort_key(field), field, value)),
            Some(b'c') => {
                chunks.insert(field, value);
            }
            Some(b'M') => meta = Some(Meta::read(value)?),
            _ => {}
        }
    }
    let Some(meta) = meta else {
        return Ok(None);
    };
    members.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    // the capacity is limited to the number of bytes received, because the size in the meta may be wrong
    let received = fields
        .iter()
        .map(|(field, value)| field.len() + value.len());
    let received_bytes = received.sum::<usize>() + members.len() + 2;
    let mut out = Vec::with_capacity(received_bytes.min(meta.size_bytes as usize));
    out.push(b'{');
    for (index, (_, field, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(field);
        match value.first() {
            Some(b'A') => write_chunked(value, &chunks, &mut out)?,
            _ => write_plain(value, &mut out),
        }
    }
    out.push(b'}');
    if out.len() as u64 != meta.size_bytes {
        return Err(StoreError::Corrupt(
            "a state of another size than its meta says",
        ));
    }
    Ok(Some((meta, out.into())))
}

pub(crate) fn assemble_content(fields: &[Field<'_>]) -> Result<Option<(Meta, Whole)>, StoreError> {
    let Some((meta, state)) = assemble(fields)? else {
        return Ok(None);
    };
    let metadata = field(fields, b"D")?.map_or_else(Json::empty_object, Json::from_compact);
    Ok(Some((meta, Whole { state, metadata })))
}

pub(crate) fn owner(fields: &[Field<'_>]) -> Result<Option<Owner>, StoreError> {
    let owner = field(fields, b"O")?.map(Owner::new);
    owner.transpose().map_err(|_| UNKNOWN)
}

fn field<'a>(fields: &[Field<'a>], name: &[u8]) -> Result<Option<&'a str>, StoreError> {
    let found = fields.iter().find(|(field, _)| *field == name);
    let text = found.map(|(_, text)| std::str::from_utf8(text));
    text.transpose().map_err(|_| UNKNOWN)
}

pub(crate) fn values(reply: &Value) -> Result<Option<Found<Vec<Option<Bytes>>>>, StoreError> {
    let Value::Array(reply) = reply else {
        return Ok(None);
    };
    let (packed, values) = reply.split_first().ok_or(UNKNOWN)?;
    let read = |value: &Value| match value {
        Value::Nil => Ok(None),
        Value::BulkString(text) => {
            let mut out = Vec::with_capacity(text.len() + 1);
            write_plain(text, &mut out);
            Ok(Some(out.into()))
        }
        Value::Array(parts) => {
            let (header, chunks) = parts.split_first().ok_or(UNKNOWN)?;
            let header = Header::read(bytes(header)?)?;
            let received = chunks
                .iter()
                .map(|chunk| bytes(chunk).map_or(0, <[u8]>::len));
            let mut out = Vec::with_capacity(received.sum::<usize>().min(header.bytes) + 1);
            write_chunks(&header, chunks.iter().map(bytes), &mut out)?;
            Ok(Some(out.into()))
        }
        _ => Err(UNKNOWN),
    };
    Ok(Some(Found {
        stamp: Meta::read(bytes(packed)?)?.stamp,
        content: values.iter().map(read).collect::<Result<_, _>>()?,
    }))
}

pub(crate) fn keys(reply: &Value) -> Result<Option<Found<Vec<Key>>>, StoreError> {
    let Value::Array(reply) = reply else {
        return Ok(None);
    };
    let [packed, Value::Array(fields)] = &reply[..] else {
        return Err(UNKNOWN);
    };
    let mut keys = Vec::with_capacity(fields.len());
    for field in fields {
        if let Some(string) = bytes(field)?
            .strip_suffix(b":")
            .filter(|text| text.starts_with(b"\""))
        {
            let string = std::str::from_utf8(string).map_err(|_| UNKNOWN)?;
            keys.push(Key::any_from_json(string).map_err(|_| UNKNOWN)?);
        }
    }
    keys.sort_unstable();
    Ok(Some(Found {
        stamp: Meta::read(bytes(packed)?)?.stamp,
        content: keys,
    }))
}

/// Returns the unescaped bytes of a key, which determine its position in the state.
fn sort_key(field: &[u8]) -> Cow<'_, [u8]> {
    let string = field.strip_suffix(b":").unwrap_or(field);
    let inner = string.get(1..string.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    // stored keys are always valid
    let plain = serde_json::from_slice::<String>(string).unwrap_or_default();
    Cow::Owned(plain.into_bytes())
}

fn write_chunked(
    header: &[u8],
    chunks: &HashMap<&[u8], &[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let header = Header::read(header)?;
    let chunk = |number| {
        let name = header.chunk_name(number);
        let chunk = chunks.get(name.as_bytes()).copied();
        chunk.ok_or(StoreError::Corrupt("an array without one of its chunks"))
    };
    write_chunks(&header, (header.head..=header.tail).map(chunk), out)
}
