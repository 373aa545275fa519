//! Scopes that are written to as often as the limits say.

use std::sync::Arc;

use async_trait::async_trait;

use super::RateGate;
use threadkeep_domain::scope::{
    Compacted, Compaction, ItemId, ScopeId, ScopeWrite, ScopeWritten, Segment,
};
use threadkeep_domain::{Access, Life, ThreadId};
use threadkeep_store::{
    Answered, HistoryFrom, HistoryPage, ItemPlace, Originals, Reader, ScopeEnd, ScopeParts,
    ScopeView, Scopes, StoreError, WriteError,
};

/// Scopes behind a gate. Reads bypass it.
#[derive(Debug, Clone)]
pub struct LimitedScopes {
    scopes: Arc<dyn Scopes>,
    gate: RateGate,
}

impl LimitedScopes {
    /// Those scopes behind that gate.
    #[must_use]
    pub fn new(scopes: Arc<dyn Scopes>, gate: RateGate) -> Self {
        Self { scopes, gate }
    }
}

#[async_trait]
impl Scopes for LimitedScopes {
    async fn admit_scope(&self, scope: &ScopeId) -> Result<(), WriteError> {
        self.gate.pass(scope, false, async { Ok(()) }).await
    }

    async fn read_scope(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        self.scopes.read_scope(scope, parts).await
    }

    async fn read_history(
        &self,
        scope: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        self.scopes.read_history(scope, reader, from, limit).await
    }

    async fn read_segments(
        &self,
        scope: &ScopeId,
        reader: Reader,
    ) -> Result<Option<Vec<Segment>>, WriteError> {
        self.scopes.read_segments(scope, reader).await
    }

    async fn read_originals(
        &self,
        scope: &ScopeId,
        reader: Reader,
        which: Originals,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let scopes = &self.scopes;
        scopes
            .read_originals(scope, reader, which, from, limit)
            .await
    }

    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPlace>, WriteError> {
        self.scopes.find_item(scope, access, id).await
    }

    /// A write to the scope of a thread that does not exist makes the thread.
    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        let written = self.scopes.write_scope(scope, write);
        self.gate.pass(scope, true, written).await
    }

    async fn compact_history(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        let compacted = self.scopes.compact_history(id, compaction);
        let scope = ScopeId::Thread(*id);
        self.gate.pass(&scope, false, compacted).await
    }

    async fn end_scope(
        &self,
        scope: &ScopeId,
        end: &ScopeEnd,
    ) -> Result<Answered<bool>, WriteError> {
        let ended = self.scopes.end_scope(scope, end);
        self.gate.pass(scope, false, ended).await
    }

    async fn read_final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError> {
        self.scopes.read_final_history(id, life, from, limit).await
    }
}
