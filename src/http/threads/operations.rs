//! Operations as they come in bodies.

use crate::domain::{Json, JsonError, Key, Mismatch, Operation, Value, add, elements};
use crate::http::request::members::addend;
use crate::http::request::shape::{body_members, read_body, read_members, read_optional_body};
use crate::web::ApiError;

const MOST: usize = 1_000;
const NO_INTEGER: &str = "`by` has to be an integer of 64 bits";
/// Levels around a value: the body, the list and the operation.
const AROUND: usize = 3;

/// Reads `{"operations":[...]}`.
///
/// # Errors
/// [`ApiError::InvalidJson`]; [`ApiError::InvalidParameter`] when the body has another shape;
/// [`ApiError::InvalidOperation`] or [`ApiError::InvalidKey`] with the index of the operation.
pub(super) fn read_operations(body: &str) -> Result<Vec<Operation>, ApiError> {
    let body = read_body(body, AROUND)?;
    let [operations] = body_members(&body, ["operations"])?;
    let operations = operations
        .filter(|list| list.starts_with('['))
        .ok_or_else(|| ApiError::InvalidParameter("`operations` has to be a list".into()))?;
    let count = elements(operations).take(MOST + 1).count();
    if !(1..=MOST).contains(&count) {
        return Err(ApiError::InvalidOperation {
            detail: "a merge has 1 to 1,000 operations".into(),
            operation: None,
        });
    }
    elements(operations)
        .enumerate()
        .map(|(index, text)| Reader(index).read(text))
        .collect()
}

/// Reads what an increment adds: 1 when there is no body or no `by`.
///
/// # Errors
/// [`ApiError::InvalidJson`] or [`ApiError::InvalidParameter`].
pub(super) fn read_increment(body: &str) -> Result<i64, ApiError> {
    let body = read_optional_body(body, 1)?;
    let [by] = body_members(&body, ["by"])?;
    addend("by", by)
}

/// Reads the operation of that index.
struct Reader(usize);

/// The members of an operation, not yet those of its `op` alone.
struct Members<'a> {
    key: Option<&'a str>,
    value: Option<&'a str>,
    max_records: Option<&'a str>,
    by: Option<&'a str>,
}

impl Reader {
    fn read(&self, text: &str) -> Result<Operation, ApiError> {
        let names = ["op", "key", "value", "max_records", "maxRecords", "by"];
        let [op, key, value, max_records, alias, by] =
            read_members(text, names).map_err(|error| self.fault(&error.detail()))?;
        if max_records.is_some() && alias.is_some() {
            return Err(self.fault("`max_records` and `maxRecords` are one"));
        }
        let members = Members {
            key,
            value,
            max_records: max_records.or(alias),
            by,
        };
        let op: Option<String> = op.and_then(|op| serde_json::from_str(op).ok());
        match op.as_deref() {
            Some("set") => self.set(&members),
            Some("delete") => self.delete(&members),
            Some("clear") => self.clear(&members),
            Some("push") => self.push(&members),
            Some("increment") => self.increment(&members),
            _ => Err(self.fault("`op` has to be set, delete, clear, push or increment")),
        }
    }

    fn set(&self, members: &Members<'_>) -> Result<Operation, ApiError> {
        self.refuse(&[members.max_records, members.by])?;
        Ok(Operation::Set {
            key: self.key(members)?,
            value: self.value(members, Value::parse)?,
        })
    }

    fn delete(&self, members: &Members<'_>) -> Result<Operation, ApiError> {
        self.refuse(&[members.value, members.max_records, members.by])?;
        Ok(Operation::Delete {
            key: self.key(members)?,
        })
    }

    fn clear(&self, members: &Members<'_>) -> Result<Operation, ApiError> {
        self.refuse(&[members.key, members.value, members.max_records, members.by])?;
        Ok(Operation::Clear)
    }

    fn push(&self, members: &Members<'_>) -> Result<Operation, ApiError> {
        self.refuse(&[members.by])?;
        let max_records = members.max_records.map(|text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            // what is past 64 bits is as good as no bound
            let number = digits.then(|| text.parse().unwrap_or(u64::MAX));
            number
                .filter(|number| *number > 0)
                .ok_or_else(|| self.fault("`max_records` has to be a whole number from 1"))
        });
        Ok(Operation::Push {
            key: self.key(members)?,
            value: self.value(members, Json::parse)?,
            max_records: max_records.transpose()?,
            mismatch: Mismatch::Refuse,
        })
    }

    fn increment(&self, members: &Members<'_>) -> Result<Operation, ApiError> {
        self.refuse(&[members.value, members.max_records])?;
        Ok(Operation::Increment {
            key: self.key(members)?,
            by: match members.by {
                None => 1,
                Some(by) => add(by, 0).map_err(|_| self.fault(NO_INTEGER))?,
            },
        })
    }

    /// A member that means nothing to the operation was meant for another one.
    fn refuse(&self, strangers: &[Option<&str>]) -> Result<(), ApiError> {
        if strangers.iter().any(Option::is_some) {
            return Err(self.fault("it has a member that does not belong to its `op`"));
        }
        Ok(())
    }

    fn key(&self, members: &Members<'_>) -> Result<Key, ApiError> {
        let text = members
            .key
            .filter(|text| text.starts_with('"'))
            .ok_or_else(|| self.fault("`key` has to be there and a string"))?;
        Key::from_json(text).map_err(|error| ApiError::InvalidKey {
            error,
            operation: Some(self.0),
        })
    }

    fn value<T>(
        &self,
        members: &Members<'_>,
        parse: impl Fn(&str) -> Result<T, JsonError>,
    ) -> Result<T, ApiError> {
        let text = members
            .value
            .ok_or_else(|| self.fault("`value` is missing"))?;
        parse(text).map_err(ApiError::InvalidJson)
    }

    fn fault(&self, detail: &str) -> ApiError {
        ApiError::InvalidOperation {
            detail: detail.into(),
            operation: Some(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(body: &str) -> Option<usize> {
        read_operations(body)
            .ok()
            .map(|operations| operations.len())
    }

    #[test]
    fn members_that_belong_to_another_operation_are_refused() {
        for bad in [
            r#"{"op":"set","key":"a"}"#,
            r#"{"op":"set","key":"a","value":1,"by":1}"#,
            r#"{"op":"delete","key":"a","value":null}"#,
            r#"{"op":"clear","key":"a"}"#,
            r#"{"op":"push","key":"a","value":1,"max_records":0}"#,
            r#"{"op":"push","key":"a","value":1,"max_records":1,"maxRecords":1}"#,
            r#"{"op":"increment","key":"a","by":1.0}"#,
            r#"{"op":"increment","key":"a","by":9223372036854775808}"#,
            r#"{"op":"Set","key":"a","value":1}"#,
            r#"{"key":"a","value":1}"#,
            r#"{"op":"set","key":7,"value":1}"#,
            r#"["set","a",1]"#,
        ] {
            let body = format!("{{\"operations\":[{{\"op\":\"clear\"}},{bad}]}}");
            let error = read_operations(&body).unwrap_err();
            assert!(
                matches!(
                    error,
                    ApiError::InvalidOperation {
                        operation: Some(1),
                        ..
                    }
                ),
                "{bad}: {error:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_fail_in_another_way_than_by_its_table(
            text in "[{}\\[\\]\":,opsetkyvalu0-9eE.\\\\ -]{0,60}",
        ) {
            let whole = format!("{{\"operations\":[{text}]}}");
            for body in [&text, &whole] {
                if let Err(error) = read_operations(body) {
                    let (status, _) = error.row();
                    prop_assert_eq!(status.as_u16(), 400);
                }
                let _ = read_increment(body);
            }
        }

        #[test]
        fn white_space_and_the_order_of_members_mean_nothing(
            space in "[ \t\r\n]{0,3}",
            key in "[a-z]{1,8}",
            by in any::<i64>(),
        ) {
            let s = &space;
            let one = format!("{{\"operations\":[{{\"op\":\"increment\",\"key\":\"{key}\",\"by\":{by}}}]}}");
            let two = format!("{s}{{{s}\"operations\"{s}:{s}[{s}{{{s}\"by\"{s}:{s}{by}{s},{s}\"key\":{s}\"{key}\"{s},\"op\"{s}:\"increment\"{s}}}{s}]{s}}}{s}");

            prop_assert_eq!(count(&one), Some(1));
            prop_assert_eq!(count(&two), Some(1));
        }
    }
}
