//! Items of a history in bodies.

use crate::domain::Json;
use crate::domain::scope::HistoryItem;
use crate::http::request::members::{list, required, string};
use crate::http::request::shape::{body_members, read_body, read_members};
use crate::web::ApiError;

/// Levels around a value: the body, the list and the item.
const AROUND: usize = 3;
/// How many are added at once.
const ITEMS: (usize, usize) = (1, 1_000);

/// One item, or those of `items`.
///
/// # Errors
/// [`ApiError`].
pub(super) fn read_items(body: &str) -> Result<Vec<HistoryItem>, ApiError> {
    let body = read_body(body, AROUND)?;
    let [id, value, items] = body_members(&body, ["id", "value", "items"])?;
    let Some(items) = items else {
        return Ok(vec![read_item(id, value, None)?]);
    };
    if id.is_some() || value.is_some() {
        let detail = "what is added is either in `items` or the body itself";
        return Err(ApiError::InvalidParameter(detail.into()));
    }
    let read = |(index, json)| {
        let [id, value] = read_members(json, ["id", "value"]).map_err(|error| {
            let detail = format!("The item at {index} is not right: {}", error.detail());
            ApiError::InvalidParameter(detail)
        })?;
        read_item(id, value, Some(index))
    };
    let items = list("items", items, ITEMS)?;
    items.into_iter().enumerate().map(read).collect()
}

fn read_item(
    id: Option<&str>,
    value: Option<&str>,
    index: Option<usize>,
) -> Result<HistoryItem, ApiError> {
    let id = string("id", required("id", id)?)?;
    let id = id.parse();
    Ok(HistoryItem {
        id: id.map_err(|error| ApiError::ScopePart { error, index })?,
        value: Json::parse(required("value", value)?).map_err(ApiError::InvalidJson)?,
    })
}
