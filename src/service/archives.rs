//! The archive: what is left of threads that are over.

use std::sync::Arc;

use super::ServiceError;
use crate::domain::{Life, Policy, Refusal, Thread, ThreadId};
use crate::store::{Archive, ArchivePage, ArchivePlace, Archives};

/// The archives of a store, and the policy that a thread lives under when it comes back.
#[derive(Debug, Clone)]
pub struct ArchiveService {
    archives: Arc<dyn Archives>,
    policy: Arc<Policy>,
}

impl ArchiveService {
    /// A service over a store, which bounds its own calls.
    #[must_use]
    pub fn new(archives: Arc<dyn Archives>, policy: Policy) -> Self {
        Self {
            archives,
            policy: Arc::new(policy),
        }
    }

    /// What a life of a thread left, or the last one that ended.
    ///
    /// # Errors
    /// [`ServiceError::ArchiveNotFound`] or [`ServiceError::Store`].
    pub async fn get(&self, id: &ThreadId, life: Option<Life>) -> Result<Archive, ServiceError> {
        let archive = self.archives.get_archive(id, life).await?;
        archive.ok_or(ServiceError::ArchiveNotFound)
    }

    /// Archives after a place, at most so many, in the order in which they were archived. There is
    /// a place to go on from unless there are no more.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn list(
        &self,
        after: &ArchivePlace,
        most: usize,
    ) -> Result<ArchivePage, ServiceError> {
        Ok(self.archives.list_archives(after, most).await?)
    }

    /// Brings a life of a thread back, or the last one that ended.
    ///
    /// # Errors
    /// [`ServiceError::ArchiveNotFound`], [`ServiceError::ThreadExists`] when it lives, or
    /// [`ServiceError::Store`].
    pub async fn restore(&self, id: &ThreadId, life: Option<Life>) -> Result<Thread, ServiceError> {
        let restored = self.archives.restore(id, life, &self.policy).await;
        match restored.map_err(Into::into) {
            Ok(thread) => thread.ok_or(ServiceError::ArchiveNotFound),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                Err(ServiceError::ThreadExists)
            }
            Err(error) => Err(error),
        }
    }
}
