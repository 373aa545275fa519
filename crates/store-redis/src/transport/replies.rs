use redis::Value;

use threadkeep_store::StoreError;

pub(crate) const UNKNOWN: StoreError = StoreError::Corrupt("a reply of an unknown form");

pub(crate) fn array(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(UNKNOWN),
    }
}

pub(crate) fn bytes(value: &Value) -> Result<&[u8], StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(UNKNOWN),
    }
}

pub(crate) fn text(value: &Value) -> Result<&str, StoreError> {
    std::str::from_utf8(bytes(value)?).map_err(|_| UNKNOWN)
}

/// Parses a non-negative integer or its text. Scripts send large numbers as text, because numbers in Lua are inexact.
pub(crate) fn integer(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| UNKNOWN),
        value => text(value)?.parse().map_err(|_| UNKNOWN),
    }
}

pub(crate) fn is_done(reply: &Value) -> Result<bool, StoreError> {
    match integer(reply)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(UNKNOWN),
    }
}

pub(crate) fn time_ms(time: &Value) -> Result<u64, StoreError> {
    match time {
        Value::Array(parts) if parts.len() == 2 => {
            Ok(integer(&parts[0])? * 1000 + integer(&parts[1])? / 1000)
        }
        _ => Err(UNKNOWN),
    }
}
