use super::{History, Keys, ScopeTarget, Tasks};
use threadkeep_service::WriteOptions;
use threadkeep_web::ApiError;

/// A scope that the app names: keys, a task list and a history, shared by all callers that open it.
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

    /// Returns its keys.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::of(self.target.clone())
    }

    /// Returns its task list.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::of(self.target.clone())
    }

    /// Returns its history.
    #[must_use]
    pub fn history(&self) -> History {
        History::of(self.target.clone())
    }

    /// Deletes all keys and tasks. With `keep_unfinished`, fails if a task is not completed.
    pub async fn clear(&self, keep_unfinished: bool) -> Result<(), ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(WriteOptions::default());
        scopes.clear(&scope, keep_unfinished, options).await?;
        Ok(())
    }

    /// Ends the scope and deletes its contents. Returns whether it existed. The scope of a thread is emptied, and the thread
    /// remains.
    pub async fn end(&self) -> Result<bool, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let turn = self.target.options(WriteOptions::default()).turn;
        Ok(scopes.end(&scope, None, turn, None).await?.answer)
    }
}
