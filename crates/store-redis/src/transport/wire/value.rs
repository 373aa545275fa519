use redis::{RedisError, Value, parse_redis_value};

use super::{Reader, Scan, integer, malformed};

/// Maximum nesting depth of values. No script returns a reply that is nested this deeply.
const DEPTH_MAX: usize = 32;
/// Size of the shortest value: `_` and the line end.
const VALUE_BYTES_MIN: usize = 3;

pub(in crate::transport) fn values(replies: &[u8], count: usize) -> Result<Vec<Value>, RedisError> {
    read_values(&mut Reader::new(replies), count, DEPTH_MAX)
}

fn read_value(reader: &mut Reader<'_>, depth: usize) -> Result<Value, RedisError> {
    let depth = depth.checked_sub(1).ok_or_else(malformed)?;
    Ok(match reader.kind()? {
        b':' => Value::Int(integer(reader.line()?)?),
        b'$' => match reader.length()? {
            Some(length) => Value::BulkString(reader.bytes(length)?.to_vec()),
            None => Value::Nil,
        },
        b'*' => match reader.length()? {
            Some(count) => Value::Array(read_values(reader, count, depth)?),
            None => Value::Nil,
        },
        b'~' => {
            let count = reader.length()?.ok_or_else(malformed)?;
            Value::Set(read_values(reader, count, depth)?)
        }
        b'%' => {
            let count = reader.length()?.ok_or_else(malformed)?;
            let pair = |_| Ok((read_value(reader, depth)?, read_value(reader, depth)?));
            Value::Map((0..count).map(pair).collect::<Result<_, RedisError>>()?)
        }
        b'_' => {
            reader.line()?;
            Value::Nil
        }
        // leaves rare types to the `redis` crate, and also errors, because that crate distinguishes kinds of errors
        _ => {
            let end = Scan::of(1).end(reader.rest())?.ok_or_else(malformed)?;
            parse_redis_value(reader.raw(end)?)?
        }
    })
}

fn read_values(
    reader: &mut Reader<'_>,
    count: usize,
    depth: usize,
) -> Result<Vec<Value>, RedisError> {
    // the server's count may be wrong, so the received bytes limit the reserved space
    let mut values = Vec::with_capacity(count.min(reader.rest().len() / VALUE_BYTES_MIN));
    for _ in 0..count {
        values.push(read_value(reader, depth)?);
    }
    Ok(values)
}
