//! Members of a body as values of a type.

use crate::domain::{add, elements};
use crate::web::ApiError;

/// A member that has to be there.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn required<'a>(name: &str, member: Option<&'a str>) -> Result<&'a str, ApiError> {
    member.ok_or_else(|| ApiError::InvalidParameter(format!("`{name}` is missing")))
}

/// A string.
///
/// # Errors
/// [`ApiError::InvalidParameter`] for another value, or one with a lone surrogate.
pub(crate) fn string(name: &str, json: &str) -> Result<String, ApiError> {
    serde_json::from_str(json).map_err(|_| wrong(name, "a string"))
}

/// A string that has to be there.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn required_string(name: &str, member: Option<&str>) -> Result<String, ApiError> {
    string(name, required(name, member)?)
}

/// Whether a member is true; one that is absent is not.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn flag(name: &str, member: Option<&str>) -> Result<bool, ApiError> {
    match member {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(wrong(name, "true or false")),
    }
}

/// A whole number within bounds, both included.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn whole(
    name: &str,
    member: Option<&str>,
    (least, most): (u64, u64),
) -> Result<Option<u64>, ApiError> {
    let read = |json: &str| {
        let is_whole = json.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_whole.then(|| json.parse().ok()).flatten();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| wrong(name, &format!("a whole number from {least} to {most}")))
    };
    member.map(read).transpose()
}

/// An integer of 64 bits, 1 when absent.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn addend(name: &str, member: Option<&str>) -> Result<i64, ApiError> {
    let read = |json| add(json, 0).map_err(|_| wrong(name, "an integer of 64 bits"));
    member.map_or(Ok(1), read)
}

/// A list of so many elements, as JSON text.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn list<'a>(
    name: &str,
    json: &'a str,
    (least, most): (usize, usize),
) -> Result<Vec<&'a str>, ApiError> {
    if !json.starts_with('[') {
        return Err(wrong(name, "a list"));
    }
    let list: Vec<_> = elements(json).take(most + 1).collect();
    if !(least..=most).contains(&list.len()) {
        return Err(wrong(name, &format!("a list of {least} to {most}")));
    }
    Ok(list)
}

/// A member of another type.
pub(crate) fn wrong(name: &str, wanted: &str) -> ApiError {
    ApiError::InvalidParameter(format!("`{name}` has to be {wanted}"))
}
