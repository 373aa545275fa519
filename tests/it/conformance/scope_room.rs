use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use threadkeep_domain::scope::{
    Appended, HistoryItem, HistoryLimit, KeyRule, KvAnswer, KvOperation, Lifetime, NewTask,
    RecordChange, Removal, ScopeId, ScopeKey, ScopePolicies, ScopePolicy, ScopeValue, ScopeWrite,
    ScopeWritten, StoredItem, TaskList, TaskStatus, TasksChange,
};
use threadkeep_domain::{Access, Conditions, IdempotencyKey, Precondition, Refusal, Stamp};
use threadkeep_store::{
    Answered, HistoryFrom, HistoryPage, Reader, ScopeEnd, ScopeParts, ScopeView, Scopes, WriteError,
};
use uuid::Uuid;

use super::room::{Room, Subject, json, refused};

/// A scope (keys, tasks, record, history) in a store, and its policy. Store errors other than refusals fail the test.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) scopes: Arc<dyn Scopes>,
    pub(crate) id: ScopeId,
    pub(crate) policy: ScopePolicy,
}

/// The content of a scope, without its expiry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScopeContent {
    view: ScopeView,
    items: Vec<StoredItem>,
}

impl Room {
    pub(crate) fn scope(&self, text: &str) -> Scope {
        let id = text.parse().unwrap();
        Scope {
            scopes: Arc::clone(&self.backend) as _,
            policy: ScopePolicies::DEFAULT.of(&id),
            id,
        }
    }

    /// Returns a scope that the first write creates, and that expires when idle.
    pub(crate) fn session(&self) -> Scope {
        self.scope(&format!("session:{}", fresh()))
    }

    /// Returns a scope that the first write creates, and that never expires.
    pub(crate) fn tool(&self) -> Scope {
        self.scope(&format!("tool:{}", fresh()))
    }

    /// Returns a scope that must be created explicitly, and that expires at a set time.
    pub(crate) fn handle(&self) -> Scope {
        self.scope(&format!("state:{}", fresh()))
    }

    pub(crate) fn scope_of(&self, thread: &Subject) -> Scope {
        self.scope(&format!("thread:{}", thread.id))
    }
}

fn fresh() -> Uuid {
    Uuid::from_u128(rand::random())
}

impl Scope {
    pub(crate) fn keeping(self, max_bytes: u64, drops_oldest: bool) -> Self {
        let history = HistoryLimit {
            max_bytes,
            drops_oldest,
        };
        let policy = ScopePolicy {
            history,
            ..self.policy
        };
        Self { policy, ..self }
    }

    pub(crate) fn idling(self, idle: Duration) -> Self {
        let policy = ScopePolicy {
            lifetime: Lifetime::Idle(idle),
            ..self.policy
        };
        Self { policy, ..self }
    }

    pub(crate) fn blank(&self) -> ScopeWrite<'_> {
        ScopeWrite::new(&self.policy)
    }

    pub(crate) async fn write(&self, write: &ScopeWrite<'_>) -> Result<ScopeWritten, Refusal> {
        refused(self.scopes.write_scope(&self.id, write).await)
    }

    pub(crate) async fn make(&self) -> ScopeWritten {
        let write = ScopeWrite {
            makes: true,
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    pub(crate) async fn try_run(
        &self,
        operations: &[KvOperation],
    ) -> Result<ScopeWritten, Refusal> {
        let write = ScopeWrite {
            operations,
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn run(&self, operations: &[KvOperation]) -> ScopeWritten {
        self.try_run(operations).await.unwrap()
    }

    pub(crate) async fn step(&self, operation: KvOperation) -> KvAnswer {
        self.run(&[operation]).await.answers[0]
    }

    pub(crate) async fn run_if(
        &self,
        precondition: Precondition,
        operations: &[KvOperation],
    ) -> Result<ScopeWritten, Refusal> {
        let write = ScopeWrite {
            operations,
            conditions: Conditions {
                precondition: Some(precondition),
                ..Conditions::default()
            },
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn run_once(
        &self,
        key: IdempotencyKey,
        operations: &[KvOperation],
    ) -> Result<ScopeWritten, Refusal> {
        let write = ScopeWrite {
            operations,
            conditions: Conditions {
                idempotency: Some(key),
                ..Conditions::default()
            },
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn set_ttl(&self, ttl: Duration) -> ScopeWritten {
        let write = ScopeWrite {
            ttl: Some(ttl),
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    pub(crate) async fn put_tasks(
        &self,
        contents: &[&str],
        expected: Option<Stamp>,
    ) -> Result<ScopeWritten, Refusal> {
        let tasks = TasksChange {
            new: tasks(contents),
            expected,
        };
        let write = ScopeWrite {
            tasks: Some(&tasks),
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn put_record(
        &self,
        new: &str,
        expected: Option<&str>,
    ) -> Result<ScopeWritten, Refusal> {
        let record = record(new, expected);
        let write = ScopeWrite {
            record: Some(&record),
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn seal(&self) -> ScopeWritten {
        let write = ScopeWrite {
            seals: true,
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    pub(crate) async fn try_add(&self, history: &[HistoryItem]) -> Result<Vec<Appended>, Refusal> {
        let write = ScopeWrite {
            history,
            ..self.blank()
        };
        Ok(self.write(&write).await?.appended)
    }

    pub(crate) async fn add(&self, history: &[HistoryItem]) -> Vec<(u64, bool)> {
        places(&self.try_add(history).await.unwrap())
    }

    pub(crate) async fn remove(&self, removal: Removal<'_>) -> ScopeWritten {
        let write = ScopeWrite {
            removes: Some(removal),
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    pub(crate) async fn clear_history(&self) -> ScopeWritten {
        let write = ScopeWrite {
            removes: Some(Removal::All),
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    pub(crate) async fn end(&self) -> bool {
        self.end_if(None).await.unwrap()
    }

    pub(crate) async fn end_if(&self, version: Option<u64>) -> Result<bool, Refusal> {
        let end = ScopeEnd {
            expected: version,
            ..ScopeEnd::new(Access::All)
        };
        Ok(self.end_by(&end).await?.answer)
    }

    pub(crate) async fn end_by(&self, end: &ScopeEnd) -> Result<Answered<bool>, Refusal> {
        refused(self.scopes.end_scope(&self.id, end).await)
    }

    pub(crate) async fn view(&self) -> Option<ScopeView> {
        self.view_with(&[]).await
    }

    async fn view_with(&self, values: &[ScopeKey]) -> Option<ScopeView> {
        let parts = ScopeParts {
            values,
            keys: true,
            tasks: true,
            record: true,
            ..ScopeParts::default()
        };
        self.read(&parts).await.unwrap()
    }

    pub(crate) async fn read(
        &self,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        self.scopes.read_scope(&self.id, parts).await
    }

    pub(crate) async fn whole(&self) -> Option<ScopeContent> {
        let keys = self.view().await?.keys;
        let view = self.view_with(&keys).await?;
        let page = self.page(HistoryFrom::After(0), 1_000_000).await?;
        let expires_ms = None;
        Some(ScopeContent {
            view: ScopeView { expires_ms, ..view },
            items: page.items,
        })
    }

    pub(crate) async fn exists(&self) -> bool {
        self.read(&ScopeParts::default()).await.unwrap().is_some()
    }

    pub(crate) async fn stamp(&self) -> Stamp {
        let view = self.read(&ScopeParts::default()).await.unwrap();
        view.map_or(Stamp::default(), |view| view.stamp)
    }

    pub(crate) async fn version(&self) -> u64 {
        self.stamp().await.version
    }

    pub(crate) async fn value(&self, text: &str) -> Option<String> {
        let mut values = self.view_with(&[key(text)]).await?.values;
        values.remove(0).map(ScopeValue::into_string)
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        let keys = self.view().await.unwrap().keys;
        keys.iter().map(|key| key.as_str().to_owned()).collect()
    }

    pub(crate) async fn tasks(&self) -> Vec<String> {
        let tasks = self.view().await.unwrap().tasks;
        let contents = tasks.tasks().iter().map(|task| task.content.clone());
        contents.collect()
    }

    pub(crate) async fn record(&self) -> Option<String> {
        let record = self.view().await?.record?;
        Some(String::from_utf8(record.to_vec()).unwrap())
    }

    pub(crate) async fn page(&self, from: HistoryFrom, limit: usize) -> Option<HistoryPage> {
        let page = self
            .scopes
            .read_history(&self.id, Reader::ALL, from, limit)
            .await;
        page.unwrap()
    }

    pub(crate) async fn seqs(&self, from: HistoryFrom, limit: usize) -> Vec<u64> {
        let page = self.page(from, limit).await.unwrap();
        page.items.iter().map(|item| item.seq).collect()
    }

    pub(crate) async fn items(&self) -> Vec<(u64, String, String)> {
        words(&self.page(HistoryFrom::After(0), 1_000_000).await.unwrap())
    }
}

pub(crate) fn words(page: &HistoryPage) -> Vec<(u64, String, String)> {
    page.items.iter().map(word).collect()
}

pub(crate) fn word(item: &StoredItem) -> (u64, String, String) {
    let value = item.value.as_str().to_owned();
    (item.seq, item.id.to_string(), value)
}

pub(crate) fn places(appended: &[Appended]) -> Vec<(u64, bool)> {
    let seq_and_repeated = |appended: &Appended| (appended.seq, appended.repeated);
    appended.iter().map(seq_and_repeated).collect()
}

pub(crate) fn key(text: &str) -> ScopeKey {
    ScopeKey::new(text, KeyRule::Free).unwrap()
}

pub(crate) fn set(key_text: &str, value: &str) -> KvOperation {
    KvOperation::Set {
        key: key(key_text),
        value: ScopeValue::new(value).unwrap(),
        ttl: None,
        if_absent: false,
    }
}

pub(crate) fn set_for(key_text: &str, value: &str, ttl: Duration) -> KvOperation {
    KvOperation::Set {
        key: key(key_text),
        value: ScopeValue::new(value).unwrap(),
        ttl: Some(ttl),
        if_absent: false,
    }
}

pub(crate) fn set_if_absent(key_text: &str, value: &str) -> KvOperation {
    KvOperation::Set {
        key: key(key_text),
        value: ScopeValue::new(value).unwrap(),
        ttl: None,
        if_absent: true,
    }
}

pub(crate) fn fill(key_text: &str, bytes: usize) -> KvOperation {
    set(key_text, &"x".repeat(bytes))
}

pub(crate) fn delete(key_text: &str) -> KvOperation {
    KvOperation::Delete { key: key(key_text) }
}

pub(crate) fn increment(key_text: &str, by: i64) -> KvOperation {
    KvOperation::Increment {
        key: key(key_text),
        by,
    }
}

pub(crate) fn item(id: &str, value: &str) -> HistoryItem {
    HistoryItem {
        id: id.parse().unwrap(),
        value: json(value),
    }
}

pub(crate) fn numbered(numbers: std::ops::Range<u64>) -> Vec<HistoryItem> {
    let number = |number: u64| item(&number.to_string(), &number.to_string());
    numbers.map(number).collect()
}

pub(crate) fn tasks(contents: &[&str]) -> TaskList {
    let task = |content: &&str| NewTask {
        id: None,
        content: (*content).to_owned(),
        status: TaskStatus::Pending,
        active_form: None,
    };
    TaskList::new(contents.iter().map(task).collect()).unwrap()
}

pub(crate) fn record(new: &str, expected: Option<&str>) -> RecordChange {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    RecordChange {
        new: bytes(new),
        expected: expected.map(bytes),
    }
}
