use super::ScopeService;
use crate::{ServiceError, WriteOptions};
use threadkeep_domain::scope::{
    KvOperation, NewTask, ScopeId, ScopeWrite, ScopeWritten, TaskChange, TaskList, TaskRef,
    TasksChange,
};
use threadkeep_domain::{Life, Refusal, Stamp};
use threadkeep_store::{ScopeParts, WriteError};

/// A stamp (version and life) that no task list ever has. The store accepts a write that expects this stamp only if its
/// idempotency key is that of an earlier write.
const IMPOSSIBLE_STAMP: Stamp = Stamp {
    version: (1 << 48) - 1,
    life: Life(0),
};

impl ScopeService {
    /// Replaces the task list. With `keep_unfinished`, rejects a list that omits an uncompleted task.
    pub async fn write_tasks(
        &self,
        scope: &ScopeId,
        tasks: &[NewTask],
        keep_unfinished: bool,
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        let new = TaskList::new(tasks.to_vec())?;
        if !keep_unfinished {
            let change = TasksChange {
                new,
                expected: None,
            };
            return self
                .write_with_tasks(scope, &[], Some(&change), options)
                .await;
        }
        self.change_tasks(scope, &[], options, |old| {
            old.check_keeps_unfinished(tasks)?;
            Ok(new.clone())
        })
        .await
    }

    pub async fn update_task(
        &self,
        scope: &ScopeId,
        which: &TaskRef,
        change: &TaskChange,
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        self.change_tasks(scope, &[], options, |old| Ok(old.update(which, change)?))
            .await
    }

    /// Deletes all keys and tasks. With `keep_unfinished`, fails if any task is uncompleted.
    pub async fn clear(
        &self,
        scope: &ScopeId,
        keep_unfinished: bool,
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        let clear = [KvOperation::Clear];
        self.change_tasks(scope, &clear, options, |old| {
            if keep_unfinished {
                old.check_keeps_unfinished(&[])?;
            }
            Ok(TaskList::default())
        })
        .await
    }

    async fn change_tasks(
        &self,
        scope: &ScopeId,
        operations: &[KvOperation],
        options: WriteOptions,
        change: impl Fn(&TaskList) -> Result<TaskList, ServiceError>,
    ) -> Result<ScopeWritten, ServiceError> {
        let parts = ScopeParts {
            tasks: true,
            ..ScopeParts::default()
        };
        self.until_unchanged(|| async {
            let view = self.read(scope, &parts).await?;
            let new = match change(&view.tasks) {
                Ok(new) => new,
                Err(error) => return self.replay_or_fail(scope, options, error).await,
            };
            let expected = Some(view.tasks_stamp);
            let change = TasksChange { new, expected };
            self.write_with_tasks(scope, operations, Some(&change), options)
                .await
        })
        .await
    }

    /// Returns the stored response for the idempotency key, or `error` if there is no such response. Without this
    /// lookup, a repeated request could fail because of later writes by other clients.
    async fn replay_or_fail(
        &self,
        scope: &ScopeId,
        options: WriteOptions,
        error: ServiceError,
    ) -> Result<ScopeWritten, ServiceError> {
        if options.idempotency.is_none() {
            return Err(error);
        }
        let policy = self.policy(scope);
        let impossible = TasksChange {
            new: TaskList::default(),
            expected: Some(IMPOSSIBLE_STAMP),
        };
        let write = ScopeWrite {
            tasks: Some(&impossible),
            ..self.plain(
                &policy,
                WriteOptions {
                    precondition: None,
                    ..options
                },
            )
        };
        let written = self
            .gate
            .pass(scope, true, self.scopes.write_scope(scope, &write));
        match written.await {
            Err(WriteError::Refused(
                Refusal::Changed | Refusal::NoThread | Refusal::ScopeNotFound,
            )) => Err(error),
            written => Ok(written?),
        }
    }

    /// Runs operations on the keys, and replaces the task list if `tasks` is given, in one step.
    pub(super) async fn write_with_tasks(
        &self,
        scope: &ScopeId,
        operations: &[KvOperation],
        tasks: Option<&TasksChange>,
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        let policy = self.policy(scope);
        let write = ScopeWrite {
            operations,
            tasks,
            ..self.plain(&policy, options)
        };
        self.commit(scope, &write).await
    }
}
