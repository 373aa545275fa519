//! Reads bodies. Unknown members are ignored, and null counts as absent.

use super::OpenAiError;
use super::edit::{Edit, edited};
use super::fault::Fault;
use super::metadata::read_metadata;
use super::new_items::read_items;
use threadkeep_domain::scope::HistoryItem;
use threadkeep_domain::{IdempotencyKey, Json, ObjectError, given, member};
use threadkeep_web::ApiError;

/// Number of nesting levels between the body and an item. The only such level is the list of items.
const AROUND: usize = 1;

pub(super) struct ObjectBody(Json);

impl ObjectBody {
    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn read(text: &str) -> Result<Self, OpenAiError> {
        let object = Json::parse_object(text, AROUND).map_err(|error| match error {
            ObjectError::Json(error) => ApiError::InvalidJson(error).into(),
            ObjectError::NotAnObject => OpenAiError::NotAnObject,
        });
        object.map(Self)
    }

    /// Returns a copy of the body with new values for `members`. The new values must not be objects or arrays.
    pub(super) fn with(&self, members: &[(&'static str, &str)]) -> Self {
        let edits = members.iter().map(|&(name, json)| Edit { name, json });
        let edits: Vec<_> = edits.collect();
        Self(Json::from_compact(edited(self.as_str(), &edits)))
    }

    pub(super) fn metadata(&self) -> Result<Option<Json>, Fault> {
        self.given("metadata").map(read_metadata).transpose()
    }

    /// Returns the metadata that replaces all existing metadata, or an empty object if the field is null.
    pub(super) fn new_metadata(&self) -> Result<Json, Fault> {
        match member(self.0.as_str(), "metadata") {
            Some("null") => Ok(Json::empty_object()),
            Some(metadata) => read_metadata(metadata),
            None => Err(Fault::missing("metadata")),
        }
    }

    /// Returns the items, or an empty list if the body does not contain `items`.
    pub(super) fn items(&self, request: Option<IdempotencyKey>) -> Result<Vec<HistoryItem>, Fault> {
        let items = self.given("items");
        items.map_or(Ok(Vec::new()), |items| read_items(items, request))
    }

    /// Returns the items. At least one item is required.
    pub(super) fn nonempty_items(
        &self,
        request: Option<IdempotencyKey>,
    ) -> Result<Vec<HistoryItem>, Fault> {
        let items = self.given("items").ok_or_else(|| Fault::missing("items"))?;
        match read_items(items, request)? {
            items if items.is_empty() => {
                Err(Fault::wrong_value("items", "an array with 1 to 20 items"))
            }
            items => Ok(items),
        }
    }

    pub(super) fn given(&self, name: &str) -> Option<&str> {
        given(self.0.as_str(), name)
    }
}

pub(super) fn object(json: &str, at: impl Into<String>) -> Result<(), Fault> {
    match json.starts_with('{') {
        true => Ok(()),
        false => Err(Fault::wrong_type(at, "an object")),
    }
}

/// Returns a required string member of the object at `at`.
pub(super) fn required(object: &str, name: &str, at: &str) -> Result<String, Fault> {
    let path = format!("{at}.{name}");
    let value = given(object, name).ok_or_else(|| Fault::missing(&path))?;
    string(value, &path)
}

/// Decodes a JSON string.
///
/// # Errors
/// [`Fault`] if the value is not a string, or contains a lone surrogate.
pub(super) fn string(json: &str, param: &str) -> Result<String, Fault> {
    serde_json::from_str(json).map_err(|_| {
        let got = match kind_of(json) {
            "a string" => "one that is not Unicode",
            kind => kind,
        };
        let expected = format!("a string, but got {got}");
        Fault::wrong_type(param, &expected)
    })
}

/// Names the type of a JSON value, for error messages.
pub(super) fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
