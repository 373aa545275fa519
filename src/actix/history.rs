use serde::Serialize;

use super::{ScopeTarget, to_json};
use threadkeep_domain::Json;
use threadkeep_domain::scope::{Appended, HistoryItem, Removal, ScopeWritten, StoredItem};
use threadkeep_service::WriteOptions;
use threadkeep_store::{HistoryFrom, HistoryPage};
use threadkeep_web::ApiError;

const ITEMS_MAX: usize = 1_000;
const TAKE_MAX: usize = 100;

/// The history of a thread or another scope, such as a session: an ordered list of results or messages, with its own
/// limits.
///
/// Calls are not queued: each call is sent to the store immediately, and takes effect even if the request fails later.
#[derive(Debug, Clone)]
pub struct History {
    target: ScopeTarget,
}

impl History {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self { target }
    }

    /// Appends a value under `id`, which consists of 1 to 128 visible ASCII characters. Retries are safe: an item with
    /// the same id and value is not added again.
    pub async fn append(&self, id: &str, value: impl Serialize) -> Result<Appended, ApiError> {
        let item = HistoryItem {
            id: id.parse()?,
            value: Json::parse(&to_json(&value)?).map_err(ApiError::InvalidJson)?,
        };
        let mut appended = self.append_all(&[item]).await?;
        appended.pop().ok_or(ApiError::Internal {
            what: "the store did not report the appended item",
            source: None,
        })
    }

    /// Appends up to 1,000 items atomically, and returns the outcome of each.
    pub async fn append_all(&self, items: &[HistoryItem]) -> Result<Vec<Appended>, ApiError> {
        if items.len() > ITEMS_MAX {
            let detail = format!("At most {ITEMS_MAX} items can be appended in one call");
            return Err(ApiError::InvalidParameter(detail));
        }
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let (scopes, scope) = self.target.open()?;
        let written = scopes
            .append(&scope, items, self.target.options(WriteOptions::default()))
            .await?;
        self.target.note_stored(&scope);
        Ok(written.appended)
    }

    /// Removes up to `count` (1 to 100) of the newest items, and returns them oldest first. Stops when the returned
    /// items reach 1 MiB, but returns at least one item unless the history is empty.
    pub async fn take(&self, count: usize) -> Result<Vec<StoredItem>, ApiError> {
        if !(1..=TAKE_MAX).contains(&count) {
            let detail = format!("1 to {TAKE_MAX} items can be taken in one call");
            return Err(ApiError::InvalidParameter(detail));
        }
        Ok(self.remove_items(Removal::Newest(count)).await?.taken)
    }

    /// Removes an item, and returns whether the item existed. The positions of other items do not change.
    pub async fn remove(&self, id: &str) -> Result<bool, ApiError> {
        let removed = self
            .remove_items(Removal::Item(&id.parse()?))
            .await?
            .removed;
        Ok(removed > 0)
    }

    /// Removes all items, and returns whether the history contained any. New items do not reuse the positions.
    pub async fn clear(&self) -> Result<bool, ApiError> {
        Ok(self.remove_items(Removal::All).await?.removed > 0)
    }

    async fn remove_items(&self, removal: Removal<'_>) -> Result<ScopeWritten, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(WriteOptions::default());
        let written = scopes.remove_items(&scope, removal, options).await?;
        self.target.note_stored(&scope);
        Ok(written)
    }

    /// Reads up to `limit` items, starting at `from`. Never reads more than 1,000 items.
    pub async fn read(&self, from: HistoryFrom, limit: usize) -> Result<HistoryPage, ApiError> {
        let (scopes, scope) = self.target.open()?;
        Ok(scopes.history(&scope, from, limit.min(ITEMS_MAX)).await?)
    }
}
