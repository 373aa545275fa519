use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::RelayError;
use super::error::wrong_input;
use crate::object::Object;
use threadkeep_domain::{Excerpt, Json};

/// Length of a hyphenated UUID. Other spellings are rejected.
const UUID_BYTES: usize = 36;

/// Default and maximum page size.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 100;

/// The prefix of actix-web's messages about queries.
const QUERY: &str = "Query deserialize error: ";

pub(super) fn read_json<T: DeserializeOwned>(json: &Json) -> Result<T, RelayError> {
    let read = serde_json::from_str::<Object<T>>(json.as_str());
    let read = read.map_err(|error| RelayError::Validation(redacted(&error.to_string())));
    Ok(read?.0)
}

pub(super) fn read_uuid(text: &str) -> Option<Uuid> {
    let is_plain = text.len() == UUID_BYTES;
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Removes the client's value from a serde error message, because the value may be long or private.
pub(super) fn redacted(text: &str) -> String {
    // removes the position, because it refers to the compacted text, not to the text that the client sent
    let (text, _) = text.rsplit_once(" at line ").unwrap_or((text, ""));
    let text = text.strip_prefix(QUERY).unwrap_or(text);
    let Some((found, expected)) = text.rsplit_once(", expected ") else {
        return text.into();
    };
    let is_name = found.starts_with("unknown field");
    match found.split('`').nth(1) {
        // shows the name only if it is short, because a long name may be a secret
        Some(name) if is_name && name.len() <= Excerpt::MAX_BYTES => {
            let name = Excerpt(name);
            format!("unknown field `{name}`, expected {expected}")
        }
        _ if is_name => format!("unknown field, expected {expected}"),
        _ => {
            let (kind, _) = found.split_once(':').unwrap_or((found, ""));
            format!("{kind}, expected {expected}")
        }
    }
}

pub(super) fn read_id(name: &str, id: Option<&str>) -> Result<Option<Uuid>, RelayError> {
    let malformed = || RelayError::Validation(format!("{name} is not a UUID"));
    id.map(|id| read_uuid(id).ok_or_else(malformed)).transpose()
}

pub(super) fn read_limit(limit: Option<usize>) -> Result<usize, RelayError> {
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(wrong_input(format!(
            "limit must be between 1 and {LIMIT_MAX}"
        )));
    }
    Ok(limit)
}

/// Returns the offset at which a page starts. A cursor is an offset in text form.
pub(super) fn read_offset(offset: Option<u64>, cursor: Option<&str>) -> Result<u64, RelayError> {
    match (offset, cursor) {
        (Some(_), Some(_)) => Err(wrong_input("offset cannot be combined with cursor")),
        (offset, None) => Ok(offset.unwrap_or(0)),
        (None, Some(cursor)) => cursor
            .parse()
            .map_err(|_| wrong_input("the cursor is invalid; pass next_cursor unchanged")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_do_not_repeat_sent_values() {
        let long = "x".repeat(Excerpt::MAX_BYTES + 1);
        for (text, message) in [
            (
                r#"invalid type: string "a: b, expected c", expected u64 at line 1 column 9"#,
                "invalid type, expected u64",
            ),
            (
                "unknown field `a`, expected `b` or `c` at line 1 column 4",
                "unknown field `a`, expected `b` or `c`",
            ),
            (
                &format!("unknown field `{long}`, expected `b`"),
                "unknown field, expected `b`",
            ),
            (
                "unknown field `a\nWARN b`, expected `b`",
                r"unknown field `a\nWARN b`, expected `b`",
            ),
            (
                "Query deserialize error: unknown field `a`, expected `b`",
                "unknown field `a`, expected `b`",
            ),
            ("missing field `a` at line 1 column 2", "missing field `a`"),
        ] {
            assert_eq!(redacted(text), message);
        }
    }
}
