//! The history of a scope in an app.

use serde::Serialize;

use super::{ScopeTarget, to_json};
use threadkeep_domain::Json;
use threadkeep_domain::scope::{Appended, HistoryItem, Removal, ScopeWritten, StoredItem};
use threadkeep_service::WriteOptions;
use threadkeep_store::{HistoryFrom, HistoryPage};
use threadkeep_web::ApiError;

/// How many items are added or read at once.
const MOST: usize = 1_000;
/// How many items are taken at once.
const MOST_TAKEN: usize = 100;

/// The history of a thread or of another scope: a list of results or messages that is added to at the
/// end, under a limit of its own.
///
/// Every call goes to the store at once: a write is done when it answers, whatever becomes of the
/// response.
#[derive(Debug, Clone)]
pub struct History {
    target: ScopeTarget,
}

impl History {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self { target }
    }

    /// Adds a value under an id of the app's, of 1 to 128 visible ASCII characters. One whose id is
    /// there with the same value is not added again, so that a repeat is harmless.
    ///
    /// # Errors
    /// [`ApiError::ScopePart`] when it can be no id; [`ApiError::Internal`] when the value cannot be
    /// JSON, or the middleware has no scopes; [`ApiError::InvalidJson`] when it is nested too deep;
    /// [`ApiError::Service`].
    pub async fn append(&self, id: &str, value: impl Serialize) -> Result<Appended, ApiError> {
        let item = HistoryItem {
            id: id.parse()?,
            value: Json::parse(&to_json(&value)?).map_err(ApiError::InvalidJson)?,
        };
        let mut appended = self.append_all(&[item]).await?;
        appended.pop().ok_or(ApiError::Internal {
            what: "the store did not answer what it added",
            source: None,
        })
    }

    /// Adds up to 1,000 items, all or none, and says what became of each.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] of more; [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn append_all(&self, items: &[HistoryItem]) -> Result<Vec<Appended>, ApiError> {
        if items.len() > MOST {
            let detail = format!("At most {MOST} items are added at once");
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

    /// Removes up to `count` of the newest items, and returns them, the oldest first. A take ends at 1 MiB of items, but
    /// has at least one unless the history is empty.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] for a count of 0 or more than 100; [`ApiError::Service`] or
    /// [`ApiError::Internal`], here as below.
    pub async fn take(&self, count: usize) -> Result<Vec<StoredItem>, ApiError> {
        if !(1..=MOST_TAKEN).contains(&count) {
            let detail = format!("1 to {MOST_TAKEN} items are taken at once");
            return Err(ApiError::InvalidParameter(detail));
        }
        Ok(self.remove_items(Removal::Newest(count)).await?.taken)
    }

    /// Removes an item, and returns whether there was one of that id. The other items keep their places.
    ///
    /// # Errors
    /// [`ApiError::ScopePart`] if `id` cannot be the id of an item.
    pub async fn remove(&self, id: &str) -> Result<bool, ApiError> {
        let removed = self
            .remove_items(Removal::Item(&id.parse()?))
            .await?
            .removed;
        Ok(removed > 0)
    }

    /// Removes all items, and returns whether there were any. Their places are not given again.
    ///
    /// # Errors
    /// As [`Self::take`].
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

    /// Reads up to `limit` items from a place on, at most 1,000.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn read(&self, from: HistoryFrom, limit: usize) -> Result<HistoryPage, ApiError> {
        let (scopes, scope) = self.target.open()?;
        Ok(scopes.history(&scope, from, limit.min(MOST)).await?)
    }
}
