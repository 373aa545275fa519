//! Parts that bodies and queries have in common.

use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::RelayError;
use super::asked::read_uuid;
use crate::domain::Json;

/// How much a page has, if nothing is said, and at most.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 100;

/// Reads a body as what it should be.
///
/// # Errors
/// [`RelayError::Validation`].
pub(super) fn read_json<T: DeserializeOwned>(json: &Json) -> Result<T, RelayError> {
    serde_json::from_str(json.as_str()).map_err(|error| {
        let text = error.to_string();
        // the place is one in the compact text, which nobody has sent
        let (text, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        RelayError::Validation(text.into())
    })
}

/// The id in a member of a body.
///
/// # Errors
/// [`RelayError::Validation`].
pub(super) fn read_id(name: &str, id: Option<&str>) -> Result<Option<Uuid>, RelayError> {
    let malformed = || RelayError::Validation(format!("{name} is not a UUID"));
    id.map(|id| read_uuid(id).ok_or_else(malformed)).transpose()
}

/// How much a page has.
///
/// # Errors
/// [`RelayError::InvalidInput`].
pub(super) fn read_limit(limit: Option<usize>) -> Result<usize, RelayError> {
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let text = format!("limit must be between 1 and {LIMIT_MAX}");
        return Err(RelayError::InvalidInput(text));
    }
    Ok(limit)
}

/// Where a page begins: at an offset, or at a cursor, which is one as text.
///
/// # Errors
/// [`RelayError::InvalidInput`].
pub(super) fn read_offset(offset: Option<u64>, cursor: Option<&str>) -> Result<u64, RelayError> {
    let invalid = |text: &str| RelayError::InvalidInput(text.into());
    match (offset, cursor) {
        (Some(_), Some(_)) => Err(invalid("offset does not go with cursor")),
        (offset, None) => Ok(offset.unwrap_or(0)),
        (None, Some(cursor)) => cursor
            .parse()
            .map_err(|_| invalid("the cursor is none of ours")),
    }
}
