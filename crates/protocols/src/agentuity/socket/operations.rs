use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::{OperationFault, RequestError};
use super::limits::OPERATIONS_MAX;
use crate::object::Object;
use threadkeep_domain::{Json, Key, Mismatch, Operation, Value};

/// Smallest number that means "no limit": 2^53. No array is that long, and the client's arithmetic cannot distinguish
/// 2^53 from the next whole number.
const NO_LIMIT: f64 = 9_007_199_254_740_992.0;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step<'a> {
    op: Option<String>,
    #[serde(borrow)]
    key: Option<&'a RawValue>,
    /// `Some` if the member is present, even if null.
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    max_records: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

pub(super) fn read_operations(list: &[&RawValue]) -> Result<Vec<Operation>, RequestError> {
    if list.len() > OPERATIONS_MAX {
        return Err(RequestError::TooManyOperations);
    }
    let read = |(index, json)| {
        read_operation(json).map_err(|fault| RequestError::Operation { index, fault })
    };
    list.iter()
        .copied()
        .map(RawValue::get)
        .enumerate()
        .map(read)
        .collect()
}

fn read_operation(json: &str) -> Result<Operation, OperationFault> {
    let Object::<Step<'_>>(step) = serde_json::from_str(json).map_err(|_| OperationFault::Shape)?;
    match step.op.as_deref() {
        Some("set") => step.read_set(),
        Some("delete") => Ok(Operation::Delete { key: step.key()? }),
        Some("clear") => Ok(Operation::Clear),
        Some("push") => step.read_push(),
        _ => Err(OperationFault::UnknownOp),
    }
}

impl Step<'_> {
    fn key(&self) -> Result<Key, OperationFault> {
        let key = self.key.filter(|key| key.get().starts_with('"'));
        Ok(Key::any_from_json(key.ok_or(OperationFault::NoKey)?.get())?)
    }

    /// Reads a `set` operation. Without a value, the operation deletes the key, because JSON has no `undefined`.
    fn read_set(&self) -> Result<Operation, OperationFault> {
        let key = self.key()?;
        Ok(match self.value {
            Some(value) => Operation::Set {
                key,
                value: Value::parse(value.get())?,
            },
            None => Operation::Delete { key },
        })
    }

    /// Reads a `push` operation. Without a value, the operation pushes null, because JSON writes `undefined` in an
    /// array as null.
    fn read_push(&self) -> Result<Operation, OperationFault> {
        Ok(Operation::Push {
            key: self.key()?,
            value: Json::parse(self.value.map_or("null", RawValue::get))?,
            max_records: self.read_max_records()?,
            mismatch: Mismatch::Skip,
        })
    }

    /// Returns the number of elements to keep, or `None` to keep all elements. Treats null as `None`, because JSON
    /// writes infinity as null. Fractions are truncated, and negative numbers count as 0.
    fn read_max_records(&self) -> Result<Option<u64>, OperationFault> {
        let Some(json) = self.max_records else {
            return Ok(None);
        };
        // strings such as "inf" fail, because `json` includes their quotes
        let number: f64 = json.get().parse().map_err(|_| OperationFault::MaxRecords)?;
        Ok((number < NO_LIMIT).then_some(number.max(0.0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Operation, OperationFault> {
        read_operation(json)
    }

    fn max_records(number: &str) -> Result<Option<u64>, String> {
        let json = format!(r#"{{"op":"push","key":"k","value":1,"maxRecords":{number}}}"#);
        match read(&json) {
            Ok(Operation::Push { max_records, .. }) => Ok(max_records),
            Ok(other) => panic!("{other:?}"),
            Err(fault) => Err(fault.to_string()),
        }
    }

    #[test]
    fn a_set_without_a_value_deletes_and_null_is_a_value() {
        let unset = read(r#"{"op":"set","key":"k"}"#);
        let null = read(r#"{"op":"set","key":"k","value":null}"#);

        assert!(matches!(unset, Ok(Operation::Delete { .. })), "{unset:?}");
        let Ok(Operation::Set { value, .. }) = null else {
            panic!("{null:?}");
        };
        assert_eq!(value.json_bytes(), 4);
    }

    #[test]
    fn a_push_without_a_value_pushes_null_and_skips_non_arrays() {
        let push = read(r#"{"op":"push","key":""}"#);

        let Ok(Operation::Push {
            key,
            value,
            max_records: None,
            mismatch: Mismatch::Skip,
        }) = push
        else {
            panic!("{push:?}");
        };
        assert_eq!((key.as_str(), value.as_str()), ("", "null"));
    }

    #[test]
    fn max_records_accepts_any_number() {
        for (number, bound) in [
            ("3", Some(3)),
            ("2.9", Some(2)),
            ("1e2", Some(100)),
            ("0", Some(0)),
            ("0.9", Some(0)),
            ("-0.0", Some(0)),
            ("-7", Some(0)),
            ("-1e400", Some(0)),
            ("null", None),
            ("9007199254740992", None),
            ("18446744073709551617", None),
            ("1e400", None),
        ] {
            assert_eq!(max_records(number), Ok(bound), "{number}");
        }
        for other in ["\"3\"", "\"inf\"", "true", "[]", "{}"] {
            assert!(max_records(other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_invalid_operation_is_rejected_with_the_reason() {
        for (json, why) in [
            ("7", "it does not have the shape of an operation"),
            (r#"["clear"]"#, "it does not have the shape of an operation"),
            ("{}", "`op` must be set, delete, clear or push"),
            (
                r#"{"op":"increment","key":"k"}"#,
                "`op` must be set, delete, clear or push",
            ),
            (r#"{"op":"delete"}"#, "`key` must be a string"),
            (
                r#"{"op":"set","key":7,"value":1}"#,
                "`key` must be a string",
            ),
            (
                r#"{"op":"delete","key":"\ud83d"}"#,
                "`key`: a key must be UTF-8",
            ),
        ] {
            assert_eq!(read(json).unwrap_err().to_string(), why, "{json}");
        }
    }
}
