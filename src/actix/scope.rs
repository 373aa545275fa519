//! A scope in an app.

use super::{History, Keys, ScopeTarget, Tasks};
use threadkeep_service::WriteOptions;
use threadkeep_web::ApiError;

/// A scope that the app names: keys, a task list and a history, shared by everyone who names it.
///
/// A session, tool or personality starts with its first write. The app decides which caller may open which scope.
#[derive(Debug, Clone)]
pub struct ScopeHandle {
    target: ScopeTarget,
}

impl ScopeHandle {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self { target }
    }

    /// Its keys.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::of(self.target.clone())
    }

    /// Its task list.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::of(self.target.clone())
    }

    /// Its history.
    #[must_use]
    pub fn history(&self) -> History {
        History::of(self.target.clone())
    }

    /// Deletes all keys and tasks; with `keep_unfinished`, not if there is a task that is not
    /// completed.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`], here as below: the store failed or refused,
    /// or the middleware has no scopes.
    pub async fn clear(&self, keep_unfinished: bool) -> Result<(), ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(WriteOptions::default());
        scopes.clear(&scope, keep_unfinished, options).await?;
        Ok(())
    }

    /// Ends it with all that it holds, and says whether there was one. That of a thread is emptied,
    /// and the thread goes on.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn end(&self) -> Result<bool, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let turn = self.target.options(WriteOptions::default()).turn;
        Ok(scopes.end(&scope, None, turn, None).await?.answer)
    }
}
