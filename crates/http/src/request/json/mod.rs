//! Parses JSON bodies into structs.
//!
//! The struct for each body derives both `Deserialize` and `ToSchema`, which keeps the reader and `openapi.json`
//! consistent. The reader uses the domain's JSON scanner, with these rules:
//!
//! - Opaque values remain text ([`RawJson`]).
//! - Errors name the path of a value, and never repeat the value.
//! - An array is not accepted as an object.
//! - Null is not the same as an absent member.
//! - If a member is repeated, its last value applies.

mod fault;
mod object;
mod reader;
mod schema;
mod types;

use serde::Deserialize;

use crate::answer::ApiResult;
use crate::request::invalid;
use threadkeep_domain::{Json, ObjectError};
use threadkeep_web::ApiError;

pub use fault::BodyFault;
use reader::Reader;
pub(crate) use types::{
    ByOp, CheckpointNameText, List, NewOwner, OwnerText, Seconds, Time, Version, Whole,
};
pub use types::{RawJson, RawObject, ThreadTtl};

/// Number of nesting levels around a member of the body.
pub(crate) const IN_BODY: usize = 1;
/// Number of nesting levels around a value inside an object in the body: the body and the object.
pub(crate) const IN_OBJECT: usize = 2;
/// Number of nesting levels around a member of a list element in the body: the body, the list and the element.
pub(crate) const IN_LIST: usize = 3;

/// Parses a body that must be an object. `around` is the number of nesting levels that may enclose a value, in addition
/// to the value's own depth limit.
pub(crate) fn body_object(body: &str, around: usize) -> ApiResult<Json> {
    Json::parse_object(body, around).map_err(|error| match error {
        ObjectError::Json(error) => ApiError::InvalidJson(error),
        ObjectError::NotAnObject => invalid("The body must be an object"),
    })
}

/// Like `body_object`, but treats an empty body as `{}`.
pub fn optional_body_object(body: &str, around: usize) -> Result<Json, ApiError> {
    body_object(if body.is_empty() { "{}" } else { body }, around)
}

pub fn read<'a, T: Deserialize<'a>>(body: &'a Json) -> Result<T, ApiError> {
    Ok(read_value(body.as_str())?)
}

/// Parses a value of compact JSON text.
pub fn read_value<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, BodyFault> {
    T::deserialize(Reader::of(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body<'a> {
        name: String,
        ttl: Option<Whole<1, 60>>,
        is_new: Option<bool>,
        #[serde(alias = "addend")]
        by: Option<i64>,
        #[serde(borrow)]
        value: Option<RawJson<'a>>,
        list: Option<List<Part, 1, 2>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        id: String,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase", deny_unknown_fields)]
    enum Step {
        Turn { by: i64 },
        Stop {},
    }

    fn fault<'a, T: Deserialize<'a>>(json: &'a str) -> String {
        match read_value::<T>(json) {
            Ok(_) => String::new(),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn an_error_names_the_path_and_the_allowed_values() {
        let allowed = "Allowed: name, ttl, is_new, addend, by, value, list";
        for (json, message) in [
            ("[]", "The value must be an object"),
            ("{}", "`name` is missing"),
            (
                r#"{"a":1,"name":7}"#,
                &format!("Unknown field `a`. {allowed}"),
            ),
            (r#"{"\ud800":1}"#, &format!("Unknown field ``. {allowed}")),
            (r#"{"name":null}"#, "`name` must be a string"),
            (r#"{"name":"\ud800"}"#, "`name` must be a string"),
            (
                r#"{"name":"","ttl":61}"#,
                "`ttl` must be a whole number from 1 to 60",
            ),
            (
                r#"{"name":"","ttl":null}"#,
                "`ttl` must be a whole number from 1 to 60",
            ),
            (
                r#"{"name":"","ttl":"a secret"}"#,
                "`ttl` must be a whole number from 1 to 60",
            ),
            (
                r#"{"name":"","is_new":1}"#,
                "`is_new` must be true or false",
            ),
            (
                r#"{"name":"","by":1.0}"#,
                "`by` must be an integer of 64 bits",
            ),
            (
                r#"{"name":"","by":9223372036854775808}"#,
                "`by` must be an integer of 64 bits",
            ),
            (r#"{"name":"","by":1,"addend":1}"#, "`by` is given twice"),
            (
                r#"{"name":"","list":{}}"#,
                "`list` must be a list of 1 to 2",
            ),
            (
                r#"{"name":"","list":[]}"#,
                "`list` must be a list of 1 to 2",
            ),
            (
                r#"{"name":"","list":[{"id":""},{"id":""},{"id":""}]}"#,
                "`list` must be a list of 1 to 2",
            ),
            (
                r#"{"name":"","list":[{"id":""},["id"]]}"#,
                "`list[1]` must be an object",
            ),
            (
                r#"{"name":"","list":[{"id":7}]}"#,
                "`list[0].id` must be a string",
            ),
            (r#"{"name":"","list":[{}]}"#, "`list[0].id` is missing"),
            (
                r#"{"name":"","list":[{"x":1}]}"#,
                "Unknown field `list[0].x`. Allowed: id",
            ),
        ] {
            assert_eq!(fault::<Body<'_>>(json), message, "{json}");
        }
    }

    #[test]
    fn the_last_value_of_a_repeated_member_applies_and_opaque_values_stay_text() {
        let json = r#"{"name":7,"value":{"a":[1.0,{"a":1,"a":2}]},"\u006eame":"b"}"#;

        let body: Body<'_> = read_value(json).unwrap();

        assert_eq!(body.name, "b");
        assert_eq!(body.value.unwrap().0, r#"{"a":[1.0,{"a":1,"a":2}]}"#);
        assert_eq!((body.ttl, body.is_new, body.by), (None, None, None));
    }

    #[test]
    fn op_selects_the_variant() {
        for (json, step) in [
            (r#"{"by":7,"op":"turn"}"#, Step::Turn { by: 7 }),
            (r#"{"op":"stop"}"#, Step::Stop {}),
        ] {
            assert_eq!(read_value::<Step>(json).unwrap(), step, "{json}");
        }
        for (json, message) in [
            ("{}", "`op` must be one of turn, stop"),
            ("\"stop\"", "The value must be an object"),
            (r#"{"op":7}"#, "`op` must be one of turn, stop"),
            (r#"{"op":"Turn","by":1}"#, "`op` must be one of turn, stop"),
            (r#"{"op":"turn"}"#, "`by` is missing"),
            (
                r#"{"op":"turn","by":1,"a":2}"#,
                "Unknown field `a`. Allowed: by",
            ),
            (
                r#"{"op":"stop","by":1}"#,
                "Unknown field `by`. No others are allowed",
            ),
        ] {
            assert_eq!(fault::<Step>(json), message, "{json}");
        }
    }
}
