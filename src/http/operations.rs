//! Operations as they come in bodies.

use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::ApiError;
use crate::domain::{Json, JsonError, Key, Operation, Value};

const MOST: usize = 1_000;

/// `{"operations":[...]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    operations: Vec<&'a RawValue>,
}

/// One operation, not checked for what belongs to its `op`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft<'a> {
    op: Op,
    #[serde(default, borrow, deserialize_with = "present")]
    key: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    #[serde(default, borrow, alias = "maxRecords", deserialize_with = "present")]
    max_records: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    by: Option<&'a RawValue>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Op {
    Set,
    Delete,
    Clear,
    Push,
    Increment,
}

/// `{"by": 1}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IncrementBody<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    by: Option<&'a RawValue>,
}

/// A member that is there, whatever it is: `null` is a value and not the absence of one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a list of operations.
///
/// # Errors
/// [`ApiError::InvalidJson`]; [`ApiError::InvalidOperation`] or [`ApiError::InvalidKey`] with the
/// index of the operation.
pub(super) fn read_operations(body: &str) -> Result<Vec<Operation>, ApiError> {
    let envelope: Envelope<'_> = serde_json::from_str(body).map_err(|error| shape(body, &error))?;
    if !(1..=MOST).contains(&envelope.operations.len()) {
        return Err(ApiError::InvalidOperation {
            detail: "a merge has 1 to 1,000 operations".into(),
            operation: None,
        });
    }
    envelope
        .operations
        .iter()
        .enumerate()
        .map(|(index, raw)| Reader { body, index }.read(raw))
        .collect()
}

/// Reads what an increment adds: 1 when there is no body or no `by`.
///
/// # Errors
/// [`ApiError::InvalidJson`], [`ApiError::InvalidParameter`], or [`ApiError::InvalidOperation`]
/// when it is no integer of 64 bits.
pub(super) fn read_increment(body: &str) -> Result<i64, ApiError> {
    if body.is_empty() {
        return Ok(1);
    }
    let parsed: IncrementBody<'_> =
        serde_json::from_str(body).map_err(|error| shape(body, &error))?;
    parsed.by.map_or(Ok(1), |by| {
        integer(by.get()).ok_or_else(|| ApiError::InvalidOperation {
            detail: NO_INTEGER.into(),
            operation: None,
        })
    })
}

const NO_INTEGER: &str = "`by` has to be an integer of 64 bits";

/// What serde found wrong: with the text itself, or with what it says.
pub(super) fn shape(body: &str, error: &serde_json::Error) -> ApiError {
    if error.is_data() {
        return ApiError::InvalidParameter(sentence(error));
    }
    // the scanner's words and place, which are the same for every body
    match Json::parse_object(body) {
        Err(error) => error.into(),
        Ok(_) => ApiError::InvalidParameter(sentence(error)),
    }
}

/// The library's message without the place, which is that of a part of the body.
fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("The body is not of the right form: {text}")
}

struct Reader<'a> {
    body: &'a str,
    index: usize,
}

impl Reader<'_> {
    fn read(&self, raw: &RawValue) -> Result<Operation, ApiError> {
        let draft: Draft<'_> = serde_json::from_str(raw.get()).map_err(|error| {
            let text = error.to_string();
            self.fault(text.split(" at line ").next().unwrap_or_default())
        })?;
        self.refuse_strangers(&draft)?;
        Ok(match draft.op {
            Op::Set => Operation::Set {
                key: self.key(draft.key)?,
                value: self.json(draft.value, Value::parse)?,
            },
            Op::Delete => Operation::Delete {
                key: self.key(draft.key)?,
            },
            Op::Clear => Operation::Clear,
            Op::Push => Operation::Push {
                key: self.key(draft.key)?,
                value: self.json(draft.value, Json::parse)?,
                max_records: self.max_records(draft.max_records)?,
            },
            Op::Increment => Operation::Increment {
                key: self.key(draft.key)?,
                by: match draft.by {
                    None => 1,
                    Some(by) => integer(by.get()).ok_or_else(|| self.fault(NO_INTEGER))?,
                },
            },
        })
    }

    /// A member that means nothing to the operation was meant for another one.
    fn refuse_strangers(&self, draft: &Draft<'_>) -> Result<(), ApiError> {
        let is_stranger = |there: bool, homes: &[Op]| there && !homes.contains(&draft.op);
        if is_stranger(
            draft.key.is_some(),
            &[Op::Set, Op::Delete, Op::Push, Op::Increment],
        ) || is_stranger(draft.value.is_some(), &[Op::Set, Op::Push])
            || is_stranger(draft.max_records.is_some(), &[Op::Push])
            || is_stranger(draft.by.is_some(), &[Op::Increment])
        {
            return Err(self.fault("it has a member that does not belong to its `op`"));
        }
        Ok(())
    }

    fn key(&self, raw: Option<&RawValue>) -> Result<Key, ApiError> {
        let raw = raw.ok_or_else(|| self.fault("`key` is missing"))?;
        if !raw.get().starts_with('"') {
            return Err(self.fault("`key` has to be a string"));
        }
        Key::from_json(raw.get()).map_err(|error| ApiError::InvalidKey {
            error,
            operation: Some(self.index),
        })
    }

    fn json<T>(
        &self,
        raw: Option<&RawValue>,
        parse: impl Fn(&str) -> Result<T, JsonError>,
    ) -> Result<T, ApiError> {
        let raw = raw.ok_or_else(|| self.fault("`value` is missing"))?;
        parse(raw.get()).map_err(|_| {
            // it is JSON, so it is too deep; the whole body says at which place
            match Json::parse_object(self.body) {
                Err(error) => error.into(),
                Ok(_) => self.fault("`value` is nested deeper than 512 levels"),
            }
        })
    }

    fn max_records(&self, raw: Option<&RawValue>) -> Result<Option<NonZeroU64>, ApiError> {
        raw.map(|raw| {
            let digits = raw.get().bytes().all(|byte| byte.is_ascii_digit());
            digits
                .then(|| raw.get().parse().unwrap_or(u64::MAX))
                .and_then(NonZeroU64::new)
                .ok_or_else(|| self.fault("`max_records` has to be a whole number from 1"))
        })
        .transpose()
    }

    fn fault(&self, detail: &str) -> ApiError {
        ApiError::InvalidOperation {
            detail: detail.into(),
            operation: Some(self.index),
        }
    }
}

fn integer(text: &str) -> Option<i64> {
    crate::domain::add(text, 0).ok()
}
