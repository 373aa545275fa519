use super::{History, Keys, ScopeTarget, Tasks};
use threadkeep_service::WriteOptions;
use threadkeep_web::ApiError;

/// A scope with keys, a task list and a history. The app chooses the id of the scope, and callers can share the scope.
///
/// The first write creates the scope of a session, tool or personality. The app decides which callers may open which
/// scope.
#[derive(Debug, Clone)]
pub struct ScopeHandle {
    target: ScopeTarget,
}

impl ScopeHandle {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self { target }
    }

    /// Returns the keys of the scope.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::of(self.target.clone())
    }

    /// Returns the task list of the scope.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::of(self.target.clone())
    }

    /// Returns the history of the scope.
    #[must_use]
    pub fn history(&self) -> History {
        History::of(self.target.clone())
    }

    /// Deletes all keys and tasks. If `keep_unfinished` is true and any task is not completed, fails instead.
    pub async fn clear(&self, keep_unfinished: bool) -> Result<(), ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(WriteOptions::default());
        scopes.clear(&scope, keep_unfinished, options).await?;
        Ok(())
    }

    /// Ends the scope and deletes its contents. Returns whether the scope existed. If the scope belongs to a thread,
    /// only the contents are deleted, and the thread remains.
    pub async fn end(&self) -> Result<bool, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let turn = self.target.options(WriteOptions::default()).turn;
        Ok(scopes.end(&scope, None, turn, None).await?.answer)
    }
}
