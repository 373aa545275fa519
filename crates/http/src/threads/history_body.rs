use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{IN_LIST, List, RawJson, body_object, invalid, read};
use threadkeep_domain::Json;
use threadkeep_domain::scope::HistoryItem;
use threadkeep_web::ApiError;

/// The items to append: either one item, or `items`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewItems<'a> {
    #[schema(nullable = false, max_length = 128, pattern = "^[!-~]+$")]
    id: Option<String>,
    /// Any JSON value.
    #[schema(value_type = Option<Value>)]
    #[serde(borrow)]
    value: Option<RawJson<'a>>,
    #[schema(nullable = false, value_type = Option<Vec<NewItem<'_>>>, min_items = 1, max_items = 1_000)]
    items: Option<List<NewItem<'a>, 1, 1_000>>,
}

/// An item to append.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewItem<'a> {
    /// The id of the item, which allows the server to recognize a retry.
    #[schema(max_length = 128, pattern = "^[!-~]+$")]
    id: String,
    /// Any JSON value.
    #[schema(value_type = Value)]
    #[serde(borrow)]
    value: RawJson<'a>,
}

pub(super) fn read_items(body: &str) -> ApiResult<Vec<HistoryItem>> {
    let body = body_object(body, IN_LIST)?;
    match read(&body)? {
        NewItems {
            id: None,
            value: None,
            items: Some(List(items)),
        } => {
            let items = items.into_iter().enumerate();
            items.map(|(index, item)| item.read(Some(index))).collect()
        }
        NewItems {
            id: Some(id),
            value: Some(value),
            items: None,
        } => Ok(vec![NewItem { id, value }.read(None)?]),
        _ => Err(invalid("Give either `id` and `value`, or `items`")),
    }
}

impl NewItem<'_> {
    fn read(&self, index: Option<usize>) -> ApiResult<HistoryItem> {
        let id = self.id.parse();
        Ok(HistoryItem {
            id: id.map_err(|error| ApiError::ScopePart { error, index })?,
            value: Json::parse(self.value.0).map_err(ApiError::InvalidJson)?,
        })
    }
}
