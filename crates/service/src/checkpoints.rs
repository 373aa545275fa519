use std::sync::Arc;

use super::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::{CheckpointName, Refusal, ThreadId, Write, Written};
use threadkeep_store::{
    Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints, Found,
};

#[derive(Debug, Clone)]
pub struct CheckpointService {
    checkpoints: Arc<dyn Checkpoints>,
    threads: ThreadService,
}

impl CheckpointService {
    #[must_use]
    pub fn new(checkpoints: Arc<dyn Checkpoints>, threads: ThreadService) -> Self {
        Self {
            checkpoints,
            threads,
        }
    }

    /// Returns a copy of this service that acts on behalf of the same caller as `threads`.
    #[must_use]
    pub fn with_threads(&self, threads: ThreadService) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    #[must_use]
    pub fn over(&self, checkpoints: Arc<dyn Checkpoints>) -> Self {
        Self {
            checkpoints,
            ..self.clone()
        }
    }

    /// Saves the state and metadata of a thread as a checkpoint. The thread's version does not change.
    pub async fn save(
        &self,
        id: &ThreadId,
        name: Option<&CheckpointName>,
        options: WriteOptions,
    ) -> Result<CheckpointSaved, ServiceError> {
        self.threads.admit(id).await?;
        let conditions = self.threads.conditions(options);
        let saved = self.checkpoints.save_checkpoint(id, name, &conditions);
        Ok(saved.await?)
    }

    /// Lists all checkpoints without their contents, newest first. Returns `None` if the thread does not exist.
    pub async fn list(
        &self,
        id: &ThreadId,
    ) -> Result<Option<Found<Vec<CheckpointHead>>>, ServiceError> {
        let access = self.threads.access();
        Ok(self.checkpoints.list_checkpoints(id, access).await?)
    }

    pub async fn get(&self, id: &ThreadId, number: u32) -> Result<Found<Checkpoint>, ServiceError> {
        let access = self.threads.access();
        let found = self.checkpoints.get_checkpoint(id, access, number).await?;
        Ok(found.ok_or(Refusal::CheckpointNotFound)?)
    }

    /// Replaces a thread's state and metadata with the content of a checkpoint. Returns the whole thread.
    pub async fn restore(
        &self,
        id: &ThreadId,
        number: u32,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        self.threads.may_replace()?;
        self.threads.admit(id).await?;
        let write = Write {
            describe: true,
            ..self.threads.plain(options)
        };
        let unreserved = Write {
            has_reservation: false,
            ..write
        };
        let restore = async |write| {
            let checkpoints = &self.checkpoints;
            checkpoints.restore_checkpoint(id, number, write).await
        };
        let threads = &self.threads;
        threads
            .with_reservation_if_needed(write.owner, restore(&unreserved), restore(&write))
            .await
    }

    pub async fn delete(
        &self,
        id: &ThreadId,
        number: u32,
        options: WriteOptions,
    ) -> Result<CheckpointDeleted, ServiceError> {
        self.threads.admit(id).await?;
        let conditions = self.threads.conditions(options);
        let deleted = self.checkpoints.delete_checkpoint(id, number, &conditions);
        Ok(deleted.await?)
    }
}
