//! The task list of a scope in an app.

use super::ScopeTarget;
use threadkeep_domain::Precondition;
use threadkeep_domain::scope::{NewTask, Task, TaskChange, TaskRef};
use threadkeep_service::WriteOptions;
use threadkeep_store::ScopeParts;
use threadkeep_web::ApiError;

/// The task list of a thread or of another scope: at most 1,000 tasks, and 131,072 bytes as JSON.
///
/// Every call goes to the store at once: a write is done when it answers, whatever becomes of the
/// response.
#[derive(Debug, Clone)]
pub struct Tasks {
    target: ScopeTarget,
    options: WriteOptions,
}

impl Tasks {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self {
            target,
            options: WriteOptions::default(),
        }
    }

    /// The same, but it writes only if the scope has that version; 0: if it does not exist.
    #[must_use]
    pub fn if_version(self, version: u64) -> Self {
        let precondition = Some(Precondition::Version(version));
        let options = WriteOptions {
            precondition,
            ..self.options
        };
        Self { options, ..self }
    }

    /// The tasks in order.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`], here as below: the store failed or refused,
    /// or the middleware has no scopes.
    pub async fn list(&self) -> Result<Vec<Task>, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let parts = ScopeParts {
            tasks: true,
            ..ScopeParts::default()
        };
        let view = scopes.read(&scope, &parts).await?;
        Ok(view.tasks.tasks().to_vec())
    }

    /// Replaces the whole list.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn write(&self, tasks: &[NewTask]) -> Result<(), ApiError> {
        self.put(tasks, false).await
    }

    /// The same, unless that would drop a task that is not completed: each has to be in the new
    /// list, by its id or with the same content.
    ///
    /// # Errors
    /// As [`Self::write`], with [`TaskError::WouldDropUnfinished`].
    ///
    /// [`TaskError::WouldDropUnfinished`]: threadkeep_domain::scope::TaskError::WouldDropUnfinished
    pub async fn write_keeping_unfinished(&self, tasks: &[NewTask]) -> Result<(), ApiError> {
        self.put(tasks, true).await
    }

    /// Changes one task. Others that change the list at the same time are heeded.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
    pub async fn update(&self, which: &TaskRef, change: &TaskChange) -> Result<(), ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(self.options);
        let written = scopes.update_task(&scope, which, change, options);
        written.await?;
        self.target.note_stored(&scope);
        Ok(())
    }

    async fn put(&self, tasks: &[NewTask], keep_unfinished: bool) -> Result<(), ApiError> {
        let (scopes, scope) = self.target.open()?;
        let options = self.target.options(self.options);
        let written = scopes.write_tasks(&scope, tasks, keep_unfinished, options);
        written.await?;
        self.target.note_stored(&scope);
        Ok(())
    }
}
