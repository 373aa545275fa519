//! Dry runs of tool calls.
//!
//! The result of a call depends on the state that the call reads, and the result must be stored together with the
//! call's write. The tool therefore runs against [`DryRunScopes`], which reads the real state. Instead of executing a
//! write, `DryRunScopes` records the write and the version of the state.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use threadkeep_domain::scope::{
    HistoryItem, ItemId, KvAnswer, KvOperation, ScopeId, ScopePolicy, ScopeValue, ScopeWrite,
    ScopeWritten, TasksChange,
};
use threadkeep_domain::{
    Access, Conditions, IntegerError, Life, Precondition, Refusal, Stamp, ThreadId, TurnToken, add,
};
use threadkeep_store::{
    Answered, HistoryFrom, HistoryPage, ItemPosition, Reader, ScopeEnd, ScopeParts, ScopeView,
    Scopes, StoreError, WriteError,
};

/// Passes reads to the underlying store, and records a write instead of executing it.
#[derive(Debug)]
pub(crate) struct DryRunScopes {
    scopes: Arc<dyn Scopes>,
    recorded: Mutex<Option<RecordedWrite>>,
}

#[derive(Debug)]
pub(crate) struct RecordedWrite {
    operations: Vec<KvOperation>,
    tasks: Option<TasksChange>,
    history: Vec<HistoryItem>,
    policy: ScopePolicy,
    access: Access,
    /// Version of the scope on which the result is based.
    version: u64,
}

impl DryRunScopes {
    pub(crate) fn over(scopes: Arc<dyn Scopes>) -> Self {
        Self {
            scopes,
            recorded: Mutex::default(),
        }
    }

    /// Takes the last recorded write.
    pub(crate) fn take_write(&self) -> Option<RecordedWrite> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.take()
    }
}

impl RecordedWrite {
    /// Returns the recorded write. `lent` is the token of the caller's turn (exclusive lease of the thread), if any.
    pub(crate) fn write(&self, lent: Option<TurnToken>) -> ScopeWrite<'_> {
        ScopeWrite {
            operations: &self.operations,
            tasks: self.tasks.as_ref(),
            history: &self.history,
            conditions: Conditions {
                turn: lent,
                access: self.access,
                precondition: Some(Precondition::Version(self.version)),
                ..Conditions::default()
            },
            ..ScopeWrite::new(&self.policy)
        }
    }
}

/// Returns the answer to an operation on a key if the key's current value is `value`.
fn answer(operation: &KvOperation, value: Option<&ScopeValue>) -> Result<KvAnswer, Refusal> {
    Ok(match operation {
        KvOperation::Set { if_absent, .. } => KvAnswer::Set(!if_absent || value.is_none()),
        KvOperation::Delete { .. } => KvAnswer::Deleted(value.is_some()),
        KvOperation::Increment { by, .. } => {
            let text = value.map_or("0", ScopeValue::as_str);
            let sum = add(text, *by).map_err(|error| match error {
                IntegerError::NotAnInteger => Refusal::NotAnInteger { operation: 0 },
                IntegerError::Overflow => Refusal::IntegerOverflow { operation: 0 },
            });
            KvAnswer::Value(sum?)
        }
        KvOperation::Clear => KvAnswer::Cleared,
    })
}

#[async_trait]
impl Scopes for DryRunScopes {
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

    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError> {
        self.scopes.find_item(scope, access, id).await
    }

    /// Records a write instead of executing it. The operations must all have different keys.
    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        let keys: Vec<_> = write
            .operations
            .iter()
            .filter_map(KvOperation::key)
            .cloned()
            .collect();
        // reads all values at one version
        let parts = ScopeParts {
            access: write.conditions.access,
            values: &keys,
            touch: false,
            ..ScopeParts::NONE
        };
        let view = self.scopes.read_scope(scope, &parts).await?;
        let view = view.unwrap_or_else(|| ScopeView::absent(&parts));
        Precondition::check(write.conditions.precondition, view.stamp)?;
        let mut values = view.values.iter();
        let answers = write.operations.iter().map(|operation| {
            let value = operation.key().and_then(|_| values.next()?.as_ref());
            answer(operation, value)
        });
        let answers = answers.collect::<Result<Vec<_>, Refusal>>()?;
        let adds_nothing = write.only_adds() && !answers.contains(&KvAnswer::Set(true));
        let stamp = Stamp {
            version: view.stamp.version + u64::from(!adds_nothing),
            ..view.stamp
        };
        let recorded = RecordedWrite {
            operations: write.operations.to_vec(),
            tasks: write.tasks.cloned(),
            history: write.history.to_vec(),
            policy: *write.policy,
            access: write.conditions.access,
            version: view.stamp.version,
        };
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorded);
        Ok(ScopeWritten {
            stamp,
            kv_bytes: view.kv_bytes,
            keys: view.key_count,
            answers,
            appended: Vec::new(),
            removed: 0,
            taken: Vec::new(),
            replayed: false,
        })
    }

    /// Fails, because no tool ends a scope.
    async fn end_scope(&self, _: &ScopeId, _: &ScopeEnd) -> Result<Answered<bool>, WriteError> {
        Err(Refusal::ScopeEnded.into())
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
