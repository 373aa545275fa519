use serde::Deserialize;
use utoipa::ToSchema;

use super::effect_object::{read_fence, read_outcome};
use crate::answer::ApiResult;
use crate::request::{
    BodyFault, ByOp, IN_LIST, List, RawJson, Whole, body_object, optional_body_object, read,
    read_value,
};
use threadkeep_domain::effects::{EffectNameError, SettleEffect};
use threadkeep_domain::scope::{HistoryItem, ItemId, ScopeError};
use threadkeep_domain::{IdempotencyKey, Json, Key, Mismatch, Operation, Value};
use threadkeep_web::ApiError;

/// The operations of a merge.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Merge<'a> {
    #[schema(value_type = Vec<TaggedOperation>, min_items = 1, max_items = 1000)]
    #[serde(borrow)]
    operations: List<RawJson<'a>, 1, 1_000>,
}

type TaggedOperation = ByOp<OperationBody<'static>>;

/// One operation of a merge.
#[derive(ToSchema, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum OperationBody<'a> {
    /// Sets a key.
    Set {
        #[schema(value_type = String, min_length = 1, max_length = 256)]
        #[serde(borrow)]
        key: RawJson<'a>,
        #[schema(value_type = Value)]
        value: RawJson<'a>,
    },
    /// Deletes a key.
    Delete {
        #[schema(value_type = String, min_length = 1, max_length = 256)]
        key: RawJson<'a>,
    },
    /// Deletes all keys.
    Clear {},
    /// Appends an element to an array, then removes the oldest elements beyond `max_records`.
    Push {
        #[schema(value_type = String, min_length = 1, max_length = 256)]
        key: RawJson<'a>,
        #[schema(value_type = Value)]
        value: RawJson<'a>,
        #[schema(nullable = false, value_type = Option<u64>, minimum = 1)]
        #[serde(alias = "maxRecords")]
        max_records: Option<Whole<1, { u64::MAX }>>,
    },
    /// Removes the newest elements of an array. The result contains them in `values`, oldest first.
    Pop {
        #[schema(value_type = String, min_length = 1, max_length = 256)]
        key: RawJson<'a>,
        /// The number of elements, 1 by default.
        #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 1000)]
        count: Option<Whole<1, 1_000>>,
    },
    /// Adds `by` to an integer.
    Increment {
        #[schema(value_type = String, min_length = 1, max_length = 256)]
        key: RawJson<'a>,
        #[schema(nullable = false)]
        by: Option<i64>,
    },
    /// Appends an item to the thread's history, unless the history already has an item with this id and value.
    Append {
        /// The id of the item. By default, the server generates an id.
        #[schema(nullable = false, max_length = 128, pattern = "^[!-~]+$")]
        id: Option<String>,
        #[schema(value_type = Value)]
        value: RawJson<'a>,
    },
    /// Records how a tool call ended. Either `result` or `error` must be present.
    Settle {
        /// The id of the tool call.
        #[schema(max_length = 128, pattern = "^[!-~]+$")]
        effect: String,
        /// The fence of the last attempt. Without it, only the holder of the turn can settle the call, if it is in
        /// doubt.
        #[schema(nullable = false, pattern = "^fence_[0-9a-f]{32}$")]
        fence: Option<String>,
        #[schema(nullable = false, value_type = Option<Value>)]
        result: Option<RawJson<'a>>,
        #[schema(nullable = false, value_type = Option<Value>)]
        error: Option<RawJson<'a>>,
    },
}

/// The body of an increment.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Increment {
    /// The number to add: a 64-bit integer, 1 by default.
    #[schema(nullable = false)]
    by: Option<i64>,
}

/// Parses the operations of a merge. An appended item without an id gets an id that is derived from the idempotency key
/// `request`, so that a retry appends the same item.
pub(super) fn read_operations(
    body: &str,
    request: Option<IdempotencyKey>,
) -> ApiResult<Vec<Operation>> {
    let body = body_object(body, IN_LIST)?;
    let merge = read_value(body.as_str());
    let Merge { operations } = merge.map_err(|fault: BodyFault| match fault.is_length() {
        true => invalid_operation(fault, None),
        false => fault.into(),
    })?;
    let read = |(index, RawJson(text))| {
        let operation = read_value::<OperationBody<'_>>(text);
        let operation = operation.map_err(|fault| invalid_operation(fault, Some(index)))?;
        operation.read(index, request)
    };
    operations.0.into_iter().enumerate().map(read).collect()
}

pub(super) fn read_increment(body: &str) -> ApiResult<i64> {
    let body = optional_body_object(body, 1)?;
    let Increment { by } = read(&body)?;
    Ok(by.unwrap_or(1))
}

fn invalid_operation(fault: BodyFault, operation: Option<usize>) -> ApiError {
    let detail = fault.to_string();
    ApiError::InvalidOperation { detail, operation }
}

impl OperationBody<'_> {
    fn read(self, index: usize, request: Option<IdempotencyKey>) -> ApiResult<Operation> {
        let operation = Some(index);
        let key = |RawJson(text): RawJson<'_>| {
            if !text.starts_with('"') {
                let fault = BodyFault::unwanted("a string").in_member("key");
                return Err(invalid_operation(fault, operation));
            }
            Key::from_json(text).map_err(|error| ApiError::InvalidKey { error, operation })
        };
        Ok(match self {
            Self::Set { key: name, value } => Operation::Set {
                key: key(name)?,
                value: Value::parse(value.0).map_err(ApiError::InvalidJson)?,
            },
            Self::Delete { key: name } => Operation::Delete { key: key(name)? },
            Self::Clear {} => Operation::Clear,
            Self::Push {
                key: name,
                value,
                max_records,
            } => Operation::Push {
                key: key(name)?,
                value: Json::parse(value.0).map_err(ApiError::InvalidJson)?,
                max_records: max_records.map(|Whole(limit)| limit),
                mismatch: Mismatch::Refuse,
            },
            Self::Pop { key: name, count } => Operation::Pop {
                key: key(name)?,
                count: count.map_or(1, |Whole(count)| count),
            },
            Self::Increment { key: name, by } => Operation::Increment {
                key: key(name)?,
                by: by.unwrap_or(1),
            },
            Self::Append { id, value } => Operation::Append(HistoryItem {
                id: match id {
                    Some(id) => id.parse().map_err(|error: ScopeError| {
                        let detail = error.to_string();
                        ApiError::InvalidOperation { detail, operation }
                    })?,
                    None => ItemId::generate(request, index),
                },
                value: Json::parse(value.0).map_err(ApiError::InvalidJson)?,
            }),
            Self::Settle {
                effect,
                fence,
                result,
                error,
            } => {
                let malformed = |detail: String| ApiError::InvalidOperation { detail, operation };
                let id = effect.parse();
                let id = id.map_err(|fault: EffectNameError| malformed(fault.to_string()))?;
                let fence = read_fence(fence.as_deref());
                let fence = fence.map_err(|fault| malformed(fault.to_string()))?;
                if result.is_some() == error.is_some() {
                    let detail = "either `result` or `error` must be given";
                    return Err(malformed(detail.to_owned()));
                }
                Operation::Settle(SettleEffect {
                    id,
                    fence,
                    outcome: read_outcome(result, error)?,
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(body: &str) -> Option<usize> {
        read_operations(body, None)
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
            r#"{"op":"append","id":"a"}"#,
            r#"{"op":"append","id":"","value":1}"#,
            r#"{"op":"append","id":"a b","value":1}"#,
            r#"{"op":"append","id":null,"value":1}"#,
            r#"{"op":"append","key":"a","value":1}"#,
        ] {
            let body = format!("{{\"operations\":[{{\"op\":\"clear\"}},{bad}]}}");
            let error = read_operations(&body, None).unwrap_err();
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
        fn every_text_is_parsed_or_fails_with_status_400(
            text in "[{}\\[\\]\":,opsetkyvalu0-9eE.\\\\ -]{0,60}",
        ) {
            let whole = format!("{{\"operations\":[{text}]}}");
            for body in [&text, &whole] {
                if let Err(error) = read_operations(body, None) {
                    prop_assert_eq!(error.problem().status, 400);
                }
                let _ = read_increment(body);
            }
        }

        #[test]
        fn white_space_and_member_order_do_not_matter(
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
