//! The history of a scope in an app.

use serde::Serialize;

use super::scope_target::ScopeTarget;
use super::state::to_json;
use crate::domain::Json;
use crate::domain::scope::{Appended, HistoryItem};
use crate::service::WriteOptions;
use crate::store::{HistoryFrom, HistoryPage};
use crate::web::ApiError;

/// How many items are added or read at once.
const MOST: usize = 1_000;

/// The history of a thread or of another scope: a list of results or messages that is only added
/// to, under a limit of its own.
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

    /// Reads up to `limit` items from a place on, at most 1,000.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn read(&self, from: HistoryFrom, limit: usize) -> Result<HistoryPage, ApiError> {
        let (scopes, scope) = self.target.open()?;
        Ok(scopes.history(&scope, from, limit.min(MOST)).await?)
    }
}
