use super::ScopeTarget;
use threadkeep_domain::Precondition;
use threadkeep_domain::scope::{NewTask, Task, TaskChange, TaskRef};
use threadkeep_service::WriteOptions;
use threadkeep_store::ScopeParts;
use threadkeep_web::ApiError;

/// The task list of a thread or another scope, such as a session: up to 1,000 tasks, and up to 131,072 bytes of JSON.
///
/// Calls are not queued: each call is sent to the store immediately, and takes effect even if the request fails later.
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

    /// Makes writes succeed only if the scope has the given version; 0 means that the scope does not exist.
    #[must_use]
    pub fn if_version(self, version: u64) -> Self {
        let precondition = Some(Precondition::Version(version));
        let options = WriteOptions {
            precondition,
            ..self.options
        };
        Self { options, ..self }
    }

    /// Returns the tasks in order.
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
    pub async fn write(&self, tasks: &[NewTask]) -> Result<(), ApiError> {
        self.put(tasks, false).await
    }

    /// Replaces the list unless an unfinished task would be dropped. The new list must contain each unfinished task,
    /// with the same id or content.
    ///
    /// Otherwise the call fails with
    /// [`TaskError::WouldDropUnfinished`](threadkeep_domain::scope::TaskError::WouldDropUnfinished).
    pub async fn write_keeping_unfinished(&self, tasks: &[NewTask]) -> Result<(), ApiError> {
        self.put(tasks, true).await
    }

    /// Changes one task. Concurrent changes to the list are kept.
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
