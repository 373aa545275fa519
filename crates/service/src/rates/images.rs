//! Threads that are made as a whole as often as the limits say.

use std::sync::Arc;

use async_trait::async_trait;

use super::RateGate;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Access, Fork, Image, Import, ThreadId, Written};
use threadkeep_store::{Images, Imported, WriteError};

/// Threads as a whole behind a gate, where each counts as a write to the thread that it makes. Exports bypass it.
#[derive(Debug, Clone)]
pub struct LimitedImages {
    images: Arc<dyn Images>,
    gate: RateGate,
}

impl LimitedImages {
    /// Those threads behind that gate.
    #[must_use]
    pub fn new(images: Arc<dyn Images>, gate: RateGate) -> Self {
        Self { images, gate }
    }

    /// Counts the thread. The gate bounds the time of the writes that pass it, and a whole thread may take longer.
    async fn admit(&self, id: &ThreadId) -> Result<(), WriteError> {
        self.gate
            .pass(&ScopeId::Thread(*id), true, async { Ok(()) })
            .await
    }
}

#[async_trait]
impl Images for LimitedImages {
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError> {
        self.images.export(id, access).await
    }

    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError> {
        self.admit(id).await?;
        self.images.import(id, import).await
    }

    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError> {
        self.admit(id).await?;
        self.images.fork(source, id, fork).await
    }
}
