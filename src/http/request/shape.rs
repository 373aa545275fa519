//! Objects with members that are known beforehand.
//!
//! They are read with the scanner of the domain and not by a library that maps objects to types:
//! values stay text, a message never repeats what was sent as a value, and an array in place of an
//! object is not taken for one.

use crate::domain::{Excerpt, Json, ObjectError, is_named, members};
use crate::web::ApiError;

/// Why an object does not have the members that it should.
#[derive(Debug)]
pub(crate) enum ShapeError {
    NotAnObject,
    /// A member that nobody knows.
    Unknown(String),
}

impl ShapeError {
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::NotAnObject => "it has to be an object".into(),
            Self::Unknown(name) => format!("there is no member `{}` here", Excerpt(name)),
        }
    }
}

/// Reads a body that is an object, or may be left out.
///
/// # Errors
/// As [`read_body`].
pub(crate) fn read_optional_body(body: &str, around: usize) -> Result<Json, ApiError> {
    read_body(if body.is_empty() { "{}" } else { body }, around)
}

/// Reads a body that is an object.
///
/// # Errors
/// [`ApiError`] with the place of the fault.
pub(crate) fn read_body(body: &str, around: usize) -> Result<Json, ApiError> {
    Json::parse_object(body, around).map_err(|error| match error {
        ObjectError::Json(error) => ApiError::InvalidJson(error),
        ObjectError::NotAnObject => {
            ApiError::InvalidParameter("The body has to be an object".into())
        }
    })
}

/// The values of the members with these names, of one given twice the last.
///
/// # Errors
/// [`ShapeError`] when it is no object, or has another member.
pub(crate) fn read_members<'a, const N: usize>(
    object: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], ShapeError> {
    if !object.starts_with('{') {
        return Err(ShapeError::NotAnObject);
    }
    let mut values = [None; N];
    for (key, value) in members(object) {
        match names.iter().position(|name| is_named(key, name)) {
            Some(place) => values[place] = Some(value),
            // a name with a lone surrogate is not repeated
            None => {
                return Err(ShapeError::Unknown(
                    serde_json::from_str(key).unwrap_or_default(),
                ));
            }
        }
    }
    Ok(values)
}

/// The members of a whole body.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(crate) fn body_members<'a, const N: usize>(
    body: &'a Json,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], ApiError> {
    read_members(body.as_str(), names).map_err(|error| {
        ApiError::InvalidParameter(format!("The body is not right: {}", error.detail()))
    })
}
