//! What the writing scripts answer.

use redis::Value;

use super::meta::Meta;
use crate::domain::{
    Answer, Json, Life, Operation, Policy, Refusal, Stamp, Thread, Write, Written,
};
use crate::store::{Destroyed, StoreError, WriteError};

pub(crate) const UNKNOWN: StoreError = StoreError::Corrupt("a reply of an unknown form");

/// The reply of the list script.
pub(crate) fn written(reply: Value, write: &Write<'_>) -> Result<Written, WriteError> {
    let reply = accepted(array(reply)?, write.policy)?;
    let [_, replayed, packed, results, description @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let meta = Meta::read(bytes(packed)?)?;
    Ok(Written {
        stamp: meta.stamp,
        size_bytes: meta.size_bytes,
        answers: answers(text(results)?, write.operations)?,
        thread: describe(&meta, description)?,
        replayed: integer(replayed)? == 1,
    })
}

/// The reply of a fast script; none when it is for the list script.
pub(crate) fn written_fast(reply: Value, write: &Write<'_>) -> Result<Option<Written>, WriteError> {
    let (packed, answer) = match reply {
        Value::Int(0) => return Ok(None),
        Value::BulkString(packed) => (packed, Answer::Done),
        reply => match &mut accepted(array(reply)?, write.policy)?[..] {
            [Value::BulkString(packed), length] => {
                (std::mem::take(packed), Answer::Length(integer(length)?))
            }
            _ => return Err(UNKNOWN.into()),
        },
    };
    let meta = Meta::read(&packed)?;
    Ok(Some(Written {
        stamp: meta.stamp,
        size_bytes: meta.size_bytes,
        answers: vec![answer],
        thread: None,
        replayed: false,
    }))
}

/// The reply of the script that ends a thread.
pub(crate) fn destroyed(reply: Value) -> Result<Destroyed, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, existed] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    Ok(Destroyed {
        existed: integer(existed)? == 1,
        replayed: integer(replayed)? == 1,
    })
}

/// The reply of the script that reads all but the state.
pub(crate) fn thread(reply: Value) -> Result<Option<Thread>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let [packed, description @ ..] = &reply[..] else {
        return Err(UNKNOWN);
    };
    describe(&Meta::read(bytes(packed)?)?, description)
}

/// The reply of the script that restores a thread.
pub(crate) fn restored(reply: Value, policy: &Policy) -> Result<Option<Thread>, WriteError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    Ok(thread(Value::Array(accepted(array(reply)?, policy)?))?)
}

/// Metadata, milliseconds to live and now make a meta whole.
fn describe(meta: &Meta, description: &[Value]) -> Result<Option<Thread>, StoreError> {
    let [metadata, left_ms, now_ms] = description else {
        return Ok(None);
    };
    let metadata = match metadata {
        Value::Nil => Json::empty_object(),
        metadata => Json::from_compact(text(metadata)?),
    };
    let expires_ms = integer(now_ms)?.checked_add(integer(left_ms)?);
    let expires_ms = expires_ms.ok_or(UNKNOWN)?;
    Ok(Some(meta.describe(metadata, expires_ms)))
}

/// The answers of operations. Those that say something stand in the reply in order, as `kind value;`.
fn answers(results: &str, operations: &[Operation]) -> Result<Vec<Answer>, StoreError> {
    let mut answers = vec![Answer::Done; operations.len()];
    let places = operations.iter().enumerate();
    let mut speaking = places.filter(|(_, operation)| says_something(operation));
    for result in results.split(';').filter(|result| !result.is_empty()) {
        let (place, answer) = match result.split_once(' ') {
            // a replay of what an earlier release has remembered, which told the place
            Some((place, answer)) => (place.parse().map_err(|_| UNKNOWN)?, answer),
            None => (speaking.next().ok_or(UNKNOWN)?.0, result),
        };
        let (kind, value) = answer.split_at_checked(1).ok_or(UNKNOWN)?;
        let answer = match kind {
            "d" => Answer::Deleted(value == "1"),
            "l" => Answer::Length(value.parse().map_err(|_| UNKNOWN)?),
            "s" => Answer::Skipped,
            "v" => Answer::Value(value.parse().map_err(|_| UNKNOWN)?),
            _ => return Err(UNKNOWN),
        };
        // a replayed request was the same to the byte, so there is such a place
        *answers.get_mut::<usize>(place).ok_or(UNKNOWN)? = answer;
    }
    Ok(answers)
}

fn says_something(operation: &Operation) -> bool {
    match operation {
        Operation::Set { .. } | Operation::Clear => false,
        Operation::Delete { .. } | Operation::Push { .. } | Operation::Increment { .. } => true,
    }
}

/// The reply of a script that no limit of a state refuses, unless it is a refusal.
pub(crate) fn unless_refused(reply: Vec<Value>) -> Result<Vec<Value>, WriteError> {
    accepted(reply, &Policy::THREAD)
}

/// The reply, unless it is a refusal.
fn accepted(reply: Vec<Value>, policy: &Policy) -> Result<Vec<Value>, WriteError> {
    let [Value::BulkString(tag), code, details @ ..] = &reply[..] else {
        return Ok(reply);
    };
    if tag != b"R" {
        return Ok(reply);
    }
    let detail = |place: usize| details.get(place).ok_or(UNKNOWN).and_then(integer);
    let operation = || detail(0).map(|operation| operation as usize);
    Err(WriteError::Refused(match text(code)? {
        "not_an_array" => Refusal::NotAnArray {
            operation: operation()?,
        },
        "not_an_integer" => Refusal::NotAnInteger {
            operation: operation()?,
        },
        "integer_overflow" => Refusal::IntegerOverflow {
            operation: operation()?,
        },
        "state_too_large" => Refusal::StateTooLarge {
            limit_bytes: policy.max_bytes,
            attempted_bytes: detail(0)?,
            size_bytes: detail(1)?,
        },
        "too_many_keys" => Refusal::TooManyKeys {
            limit_keys: policy.max_keys,
        },
        "metadata_too_large" => Refusal::MetadataTooLarge {
            limit_bytes: policy.max_metadata_bytes,
            attempted_bytes: detail(0)?,
        },
        "version_mismatch" => Refusal::VersionMismatch {
            current: Stamp {
                version: detail(0)?,
                life: Life(
                    match details.get(1).ok_or(UNKNOWN).and_then(bytes)?.try_into() {
                        Ok(life) => u64::from_be_bytes(life),
                        Err(_) => return Err(UNKNOWN.into()),
                    },
                ),
            },
        },
        "value_changed" => Refusal::ValueChanged,
        "thread_destroyed" => Refusal::Destroyed,
        "idempotency_key_reused" => Refusal::IdempotencyKeyReused,
        "too_many_idempotency_keys" => Refusal::TooManyIdempotencyKeys {
            retry_after_ms: detail(0)?,
        },
        _ => return Err(UNKNOWN.into()),
    }))
}

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

/// A whole number from 0, as the protocol's integer or as text where a double would be too small.
pub(crate) fn integer(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| UNKNOWN),
        value => text(value)?.parse().map_err(|_| UNKNOWN),
    }
}

/// Whether a script answered 1.
pub(crate) fn is_done(reply: &Value) -> Result<bool, StoreError> {
    match integer(reply)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(UNKNOWN),
    }
}
