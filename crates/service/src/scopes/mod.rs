//! Stores scopes: keys, tasks and histories for models, tools and applications.

mod tasks;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::relay::state_events;
use super::threads::work_budget::WorkBudget;
use super::{ServiceError, ThreadService, WriteOptions};
use crate::attempts::until_unchanged;
use crate::rates::RateGate;
use threadkeep_domain::scope::{
    Compacted, Compaction, HistoryItem, ItemId, KvOperation, RecordChange, Removal, ScopeId,
    ScopePolicies, ScopePolicy, ScopeWrite, ScopeWritten, Segment, TASKS_MAX_BYTES,
};
use threadkeep_domain::{
    Conditions, IdempotencyKey, Life, Owner, Precondition, Refusal, ThreadId, TurnToken,
};
use threadkeep_store::{
    Answered, HistoryFrom, HistoryPage, ItemPosition, Originals, ScopeEnd, ScopeParts, ScopeView,
    Scopes, WriteError,
};

#[derive(Debug, Clone)]
pub struct ScopeService {
    scopes: Arc<dyn Scopes>,
    threads: ThreadService,
    /// The gate that `threads` uses, or a gate without limits if [`Self::over`] created the service.
    gate: RateGate,
    policies: Arc<ScopePolicies>,
    pub(super) timeout: Duration,
}

impl ScopeService {
    /// Creates a service that uses `scopes`, which has its own timeouts. If a scope's thread does not exist, the first
    /// write creates it through `threads`. A change that keeps conflicting with other writers fails after `timeout`.
    #[must_use]
    pub fn new(
        scopes: Arc<dyn Scopes>,
        threads: ThreadService,
        policies: ScopePolicies,
        timeout: Duration,
    ) -> Self {
        Self {
            scopes,
            gate: threads.gate.clone(),
            threads,
            policies: Arc::new(policies),
            timeout,
        }
    }

    /// Returns a copy that uses a different scope store. The copy's writes do not count toward rate limits.
    #[must_use]
    pub fn over(&self, scopes: Arc<dyn Scopes>) -> Self {
        Self {
            scopes,
            gate: RateGate::default(),
            ..self.clone()
        }
    }

    /// Returns a copy that creates threads through `threads`.
    #[must_use]
    pub fn with_threads(&self, threads: ThreadService) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// Returns a copy of this service that acts on behalf of `owner`, or of a caller without an owner.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        self.with_threads(self.threads.on_behalf_of(owner))
    }

    #[must_use]
    pub fn policy(&self, scope: &ScopeId) -> ScopePolicy {
        self.policies.of(scope)
    }

    /// Counts a write against the rate limits. Fails if the write exceeds a limit.
    pub async fn admit(&self, scope: &ScopeId) -> Result<(), ServiceError> {
        Ok(self.gate.pass(scope, false, async { Ok(()) }).await?)
    }

    /// Reads parts of a scope at one version. If scopes of this kind are created by their first write, a missing scope
    /// reads as empty, at version 0.
    pub async fn read(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<ScopeView, ServiceError> {
        let parts = &ScopeParts {
            access: self.threads.access(),
            ..*parts
        };
        match self.scopes.read_scope(scope, parts).await? {
            Some(view) => Ok(view),
            None if self.policy(scope).is_made => Err(Refusal::ScopeNotFound.into()),
            None => Ok(ScopeView::absent(parts)),
        }
    }

    /// Runs all operations on the keys in order, or none of them.
    pub async fn write(
        &self,
        scope: &ScopeId,
        operations: &[KvOperation],
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        self.write_with_tasks(scope, operations, None, options)
            .await
    }

    /// Appends items to the history. An item with the id and value of an existing item is not appended again.
    pub async fn append(
        &self,
        scope: &ScopeId,
        items: &[HistoryItem],
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        let policy = self.policy(scope);
        let write = ScopeWrite {
            history: items,
            ..self.plain(&policy, options)
        };
        self.commit(scope, &write).await
    }

    /// Removes items from the history. Their sequence numbers are not reused.
    pub async fn remove_items(
        &self,
        scope: &ScopeId,
        removal: Removal<'_>,
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        let policy = self.policy(scope);
        let write = ScopeWrite {
            removes: Some(removal),
            ..self.plain(&policy, options)
        };
        self.commit(scope, &write).await
    }

    /// Replaces the `count` oldest items of a thread's history, up to sequence number `through`, with `items`. Stores
    /// the replaced items for `keep`. Fails with [`Refusal::PrefixChanged`] if the oldest items have changed.
    pub async fn compact(
        &self,
        id: &ThreadId,
        (through, count): (u64, u64),
        items: &[HistoryItem],
        keep: Duration,
        options: WriteOptions,
    ) -> Result<Compacted, ServiceError> {
        let scope = ScopeId::Thread(*id);
        let compaction = Compaction {
            through,
            count,
            items,
            keep,
            limit: self.policy(&scope).history,
            access: self.threads.access(),
            turn: options.turn,
            idempotency: self.threads.own(options.idempotency),
        };
        let compact = || {
            self.gate
                .pass(&scope, false, self.scopes.compact_history(id, &compaction))
        };
        match compact().await {
            Err(WriteError::Refused(Refusal::NoThread)) => {}
            compacted => return Ok(compacted?),
        }
        // an existing thread without an owner gets the caller's owner
        let exists = WriteOptions::default().requiring(Precondition::Exists);
        match self.threads.merge(id, &[], exists).await {
            Ok(_) => Ok(compact().await?),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                Err(Refusal::PrefixChanged { count: 0 }.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Lists the compacted segments of the history, newest first.
    pub async fn segments(&self, scope: &ScopeId) -> Result<Vec<Segment>, ServiceError> {
        let reader = self.threads.reader();
        let segments = self.scopes.read_segments(scope, reader).await?;
        Ok(segments.unwrap_or_default())
    }

    /// Reads up to `limit` items of the history as they were before compaction. Returns `None` if the history or the
    /// segment (the items that one compaction replaced) does not exist.
    pub async fn originals(
        &self,
        scope: &ScopeId,
        which: Originals,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, ServiceError> {
        let (scopes, reader) = (&self.scopes, self.threads.reader());
        let page = scopes.read_originals(scope, reader, which, from, limit);
        Ok(page.await?)
    }

    pub async fn history(
        &self,
        scope: &ScopeId,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<HistoryPage, ServiceError> {
        let reader = self.threads.reader();
        match self.scopes.read_history(scope, reader, from, limit).await? {
            Some(page) => Ok(page),
            None if self.policy(scope).is_made => Err(Refusal::ScopeNotFound.into()),
            None => Ok(HistoryPage::EMPTY),
        }
    }

    /// Finds an item in the history, including an item that was removed recently.
    pub async fn find_item(
        &self,
        scope: &ScopeId,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, ServiceError> {
        let access = self.threads.access();
        Ok(self.scopes.find_item(scope, access, id).await?)
    }

    /// Reads part of an ended thread's history. `life` selects one of the threads with this id, or the last one if
    /// `None`.
    pub async fn final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<HistoryPage, ServiceError> {
        let page = self
            .scopes
            .read_final_history(id, life, from, limit)
            .await?;
        page.ok_or(ServiceError::ArchiveNotFound)
    }

    /// Ends a scope and deletes its contents if `expected` is `None` or the scope's version. Returns whether the scope
    /// existed.
    pub async fn end(
        &self,
        scope: &ScopeId,
        expected: Option<u64>,
        turn: Option<TurnToken>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<bool>, ServiceError> {
        let end = ScopeEnd {
            access: self.threads.access(),
            expected,
            turn,
            idempotency: self.threads.own(idempotency),
        };
        let ended = self.scopes.end_scope(scope, &end);
        Ok(self.gate.pass(scope, false, ended).await?)
    }

    /// Changes the record of a scope. `change` receives the scope with its record, and returns the new record and the
    /// write. Retries after concurrent changes to the record.
    pub(crate) async fn change_record<'a, W>(
        &self,
        scope: &ScopeId,
        change: W,
    ) -> Result<ScopeWritten, ServiceError>
    where
        W: Fn(&ScopeView) -> Result<(bytes::Bytes, ScopeWrite<'a>), ServiceError>,
    {
        self.until_unchanged(|| async {
            let view = self.read(scope, &ScopeParts::RECORD).await?;
            let (new, write) = change(&view)?;
            let record = RecordChange {
                new,
                expected: view.record,
            };
            let write = ScopeWrite {
                record: Some(&record),
                ..write
            };
            self.commit(scope, &write).await
        })
        .await
    }

    fn plain<'a>(&self, policy: &'a ScopePolicy, options: WriteOptions) -> ScopeWrite<'a> {
        ScopeWrite {
            conditions: self.threads.conditions(options),
            ..ScopeWrite::new(policy)
        }
    }

    /// Runs a write. Creates the scope's thread if the thread does not exist.
    pub(crate) async fn commit(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, ServiceError> {
        let events = state_events::items(scope, write);
        // most writes have no events, so the history items, which can be large, are usually borrowed instead of copied
        let history = match &events[..] {
            [] => Cow::Borrowed(write.history),
            events => Cow::Owned([write.history, events].concat()),
        };
        let write = ScopeWrite {
            history: &history,
            conditions: Conditions {
                access: self.threads.access(),
                ..write.conditions
            },
            ..*write
        };
        let thread = scope.thread();
        let deadline = tokio::time::Instant::now() + self.timeout;
        loop {
            let written = self
                .gate
                .pass(scope, true, self.scopes.write_scope(scope, &write));
            match (written.await, thread) {
                (Err(WriteError::Refused(Refusal::NoThread)), Some(id))
                    if tokio::time::Instant::now() < deadline =>
                {
                    // creates the thread, with the caller's owner if there is one
                    self.threads.merge(id, &[], WriteOptions::default()).await?;
                }
                (written, _) => return Ok(written?),
            }
        }
    }

    /// Retries `attempt` until the timeout while other writers change the scope.
    pub(super) async fn until_unchanged<F>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<ScopeWritten, ServiceError>
    where
        F: Future<Output = Result<ScopeWritten, ServiceError>>,
    {
        let work_budget = WorkBudget::new(self.timeout);
        until_unchanged(self.timeout, || async {
            // an attempt processes at most a whole task list
            work_budget.spend(TASKS_MAX_BYTES)?;
            attempt().await
        })
        .await
    }
}
