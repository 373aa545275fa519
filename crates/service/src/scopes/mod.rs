//! Scopes: what models, tools and applications keep there.

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
    Answered, HistoryFrom, HistoryPage, ItemPlace, Originals, ScopeEnd, ScopeParts, ScopeView,
    Scopes, WriteError,
};

/// The scopes of a store under their policies.
#[derive(Debug, Clone)]
pub struct ScopeService {
    scopes: Arc<dyn Scopes>,
    threads: ThreadService,
    /// The same as that of `threads`, except over other scopes.
    gate: RateGate,
    policies: Arc<ScopePolicies>,
    pub(super) timeout: Duration,
}

impl ScopeService {
    /// A service over a store, which bounds its own calls. `threads` makes the thread of a scope
    /// that is written to first. A change that keeps meeting other writers gives up after `timeout`.
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

    /// Uses other scopes. Their writes count towards no limit.
    #[must_use]
    pub fn over(&self, scopes: Arc<dyn Scopes>) -> Self {
        Self {
            scopes,
            gate: RateGate::default(),
            ..self.clone()
        }
    }

    /// The same service, which makes threads by that one.
    #[must_use]
    pub fn with_threads(&self, threads: ThreadService) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// The same scopes for a caller without an owner, or with that one.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        self.with_threads(self.threads.on_behalf_of(owner))
    }

    /// The rules of a scope.
    #[must_use]
    pub fn policy(&self, scope: &ScopeId) -> ScopePolicy {
        self.policies.of(scope)
    }

    /// Asks the limits whether a client may write to a scope now.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] when a limit is reached, or [`ServiceError::Store`].
    pub async fn admit(&self, scope: &ScopeId) -> Result<(), ServiceError> {
        Ok(self.gate.pass(scope, false, async { Ok(()) }).await?)
    }

    /// Some parts of a scope, at one version. One that need not have been made reads as empty, at
    /// version 0, before its first write.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::ScopeNotFound`], or [`ServiceError::Store`].
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

    /// Runs operations on the keys in order, all or none.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn write(
        &self,
        scope: &ScopeId,
        operations: &[KvOperation],
        options: WriteOptions,
    ) -> Result<ScopeWritten, ServiceError> {
        self.write_with_tasks(scope, operations, None, options)
            .await
    }

    /// Adds items to the history. One whose id is there with the same value is not added again.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
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

    /// Removes items from the history, whose places are not given again.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
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

    /// Puts `items` in the place of the `count` oldest items of the history of a thread, which go up to the place `through`, and
    /// keeps the originals for a while.
    ///
    /// # Errors
    /// [`ServiceError::Refused`], also with [`Refusal::PrefixChanged`], or [`ServiceError::Store`].
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
        // a thread that exists has no owner yet, and gets that of the caller
        let exists = WriteOptions::default().requiring(Precondition::Exists);
        match self.threads.merge(id, &[], exists).await {
            Ok(_) => Ok(compact().await?),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                Err(Refusal::PrefixChanged { count: 0 }.into())
            }
            Err(error) => Err(error),
        }
    }

    /// The segments of the history, the newest first.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn segments(&self, scope: &ScopeId) -> Result<Vec<Segment>, ServiceError> {
        let reader = self.threads.reader();
        let segments = self.scopes.read_segments(scope, reader).await?;
        Ok(segments.unwrap_or_default())
    }

    /// Up to `limit` items of the history as they were before compactions. None: there is no such segment, or no history.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
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

    /// Up to `limit` items of the history.
    ///
    /// # Errors
    /// As [`Self::read`].
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

    /// The place of an item of the history, or of one that was removed lately.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn find_item(
        &self,
        scope: &ScopeId,
        id: &ItemId,
    ) -> Result<Option<ItemPlace>, ServiceError> {
        let access = self.threads.access();
        Ok(self.scopes.find_item(scope, access, id).await?)
    }

    /// A part of the history that a life of a thread left, or the last one that ended.
    ///
    /// # Errors
    /// [`ServiceError::ArchiveNotFound`] or [`ServiceError::Store`].
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

    /// Ends a scope with all that it holds, unless it has another version. Whether there was one.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
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

    /// Changes the record of a scope, based on its current value; `change` gets the scope with its record, and returns
    /// the write with its new record. Retried after concurrent changes of the record.
    ///
    /// # Errors
    /// Those of `change`, [`ServiceError::Refused`] or [`ServiceError::Store`].
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

    /// A write of the caller that changes nothing yet.
    fn plain<'a>(&self, policy: &'a ScopePolicy, options: WriteOptions) -> ScopeWrite<'a> {
        ScopeWrite {
            conditions: self.threads.conditions(options),
            ..ScopeWrite::new(policy)
        }
    }

    /// Does a write as it stands; a thread that does not exist is made for it.
    ///
    /// # Errors
    /// [`ServiceError::Refused`], also by the thread, or [`ServiceError::Store`].
    pub(crate) async fn commit(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, ServiceError> {
        let told = state_events::items(scope, write);
        // items can be large, and most scopes tell nothing: those are not copied
        let history = match &told[..] {
            [] => Cow::Borrowed(write.history),
            told => Cow::Owned([write.history, told].concat()),
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
                    // whatever it is when this is done, it exists, and has an owner if the caller is one
                    self.threads.merge(id, &[], WriteOptions::default()).await?;
                }
                (written, _) => return Ok(written?),
            }
        }
    }

    /// Repeats a change while others change the scope in between.
    ///
    /// # Errors
    /// Those of the attempt, or [`StoreError::Timeout`](threadkeep_store::StoreError::Timeout).
    pub(super) async fn until_unchanged<F>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<ScopeWritten, ServiceError>
    where
        F: Future<Output = Result<ScopeWritten, ServiceError>>,
    {
        let work_budget = WorkBudget::new(self.timeout);
        until_unchanged(self.timeout, || async {
            // none works out more than a task list
            work_budget.spend(TASKS_MAX_BYTES)?;
            attempt().await
        })
        .await
    }
}
