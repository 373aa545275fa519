use super::work_budget::WorkBudget;
use crate::attempts::until_unchanged;
use crate::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::{
    Json, MetadataChange, Owner, OwnerChange, Precondition, Refusal, Thread, ThreadId, Write,
};

/// A change that a caller computes from the current thread.
#[derive(Debug)]
pub enum ThreadChange {
    None,
    Write {
        /// New metadata, which replaces all of the old metadata.
        metadata: Option<Json>,
        /// Assigned only if the thread has no owner.
        owner: Option<Owner>,
    },
}

#[derive(Debug)]
pub struct Changed {
    pub thread: Thread,
    /// True if this is the remembered answer to an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl ThreadService {
    /// Applies the change that `change` computes from the thread. Retries after concurrent changes. Never creates a
    /// thread: returns `None` if the thread does not exist.
    pub async fn change_thread(
        &self,
        id: &ThreadId,
        options: WriteOptions,
        change: impl Fn(&Thread) -> Result<ThreadChange, ServiceError>,
    ) -> Result<Option<Changed>, ServiceError> {
        self.admit(id).await?;
        let work_budget = WorkBudget::new(self.timeout);
        until_unchanged(self.timeout, || async {
            let Some(thread) = self.get_thread(id).await? else {
                return self.answer_for_missing(id, options).await;
            };
            let change = change(&thread)?;
            work_budget.spend(thread.metadata.as_str().len())?;
            match self.apply(id, options, thread, change).await {
                Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                    Err(Refusal::Changed.into())
                }
                changed => Ok(Some(changed?)),
            }
        })
        .await
    }

    async fn apply(
        &self,
        id: &ThreadId,
        options: WriteOptions,
        thread: Thread,
        change: ThreadChange,
    ) -> Result<Changed, ServiceError> {
        let ThreadChange::Write { metadata, owner } = change else {
            let replayed = false;
            return Ok(Changed { thread, replayed });
        };
        let metadata = metadata.map(|new| MetadataChange {
            new,
            old: Some(thread.metadata.clone()),
        });
        let precondition = match &owner {
            Some(_) => Precondition::Stamp(thread.stamp),
            None => Precondition::Life(thread.stamp.life),
        };
        let write = Write {
            metadata: metadata.as_ref(),
            owner: owner.as_ref().map_or(OwnerChange::None, OwnerChange::Bind),
            describe: true,
            ..self.plain(options.requiring(precondition))
        };
        let written = self.commit(id, &write).await?;
        Ok(Changed {
            thread: written.thread.unwrap_or(thread),
            replayed: written.replayed,
        })
    }

    /// Answers a request to change a missing thread. Returns the answer to an earlier request with the same idempotency
    /// key. Fails if the id has a tombstone (a mark that its thread ended recently).
    async fn answer_for_missing(
        &self,
        id: &ThreadId,
        options: WriteOptions,
    ) -> Result<Option<Changed>, ServiceError> {
        let write = Write {
            owner: OwnerChange::None,
            describe: true,
            ..self.plain(options.requiring(Precondition::Exists))
        };
        match self.commit(id, &write).await {
            Ok(written) if written.replayed => Ok(written.thread.map(|thread| Changed {
                thread,
                replayed: true,
            })),
            // the thread has been created meanwhile
            Ok(_) => Err(Refusal::Changed.into()),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
