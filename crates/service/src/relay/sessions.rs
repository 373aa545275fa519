//! Stores sessions. A session is a scope with metadata and a history that holds a conversation's messages.

use std::sync::Arc;

use futures_util::TryFutureExt as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::catalog::{Catalog, Kind, New};
use super::making::Record;
use super::session_metadata::SessionMetadata;
use super::tool_state::{ToolState, read_tool_state};
use crate::attempts::in_time;
use crate::{Creation, Listed, ScopeService, ServiceError};
use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{
    KvOperation, RecordChange, Removal, ScopeId, ScopeWrite, TaskList, TasksChange,
};
use threadkeep_store::{Clock, Listings, ScopeParts, ScopeView};

#[derive(Debug, Clone)]
pub struct Session {
    pub id: Uuid,
    pub customer_id: Option<Uuid>,
    pub metadata: SessionMetadata,
    /// Keys and tasks. Empty in a list.
    pub tools: ToolState,
    pub message_count: u64,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    pub updated_ms: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Clearing {
    /// True to clear keys and tasks.
    pub tool_state: bool,
    /// True to fail if clearing would delete an uncompleted task.
    pub keep_unfinished: bool,
}

#[derive(Debug, Clone)]
pub struct SessionService(pub(super) Catalog);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Described {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    customer_id: Option<String>,
    metadata: SessionMetadata,
}

const KIND: Kind = Kind {
    list: "sessions",
    scope: session_scope,
    owner: |view| Record::<Described>::read(view).ok()?.of.customer_id,
};

fn session_scope(id: Uuid) -> ScopeId {
    let name = id.to_string().parse();
    ScopeId::Session(name.expect("a UUID is visible text"))
}

impl SessionService {
    #[must_use]
    pub fn new(scopes: ScopeService, listings: Arc<dyn Listings>, clock: Clock) -> Self {
        Self(Catalog::new(scopes, listings, clock, KIND))
    }

    /// Creates a session, or returns the session that an earlier attempt at the same request created.
    pub async fn create(
        &self,
        making: &Creation,
        customer_id: Option<Uuid>,
        metadata: SessionMetadata,
    ) -> Result<Session, ServiceError> {
        metadata.check()?;
        let customer_id = customer_id.map(|id| id.to_string());
        let described = Described {
            customer_id: customer_id.clone(),
            metadata,
        };
        let new = New {
            owner: customer_id.as_deref(),
            record: Record::new(making, described).to_bytes(),
            ttl: None,
        };
        self.get_after(making.id, self.0.make(making, &new)).await
    }

    pub async fn get(&self, id: Uuid) -> Result<Session, ServiceError> {
        let (view, tools) = read_tool_state(&self.0.scopes, &self.0.scope(id)).await?;
        Ok(Session {
            tools,
            ..session(id, &view)?
        })
    }

    /// Lists up to `limit` sessions starting at `offset`, newest first. Without `customer_id`, lists the sessions of
    /// all customers.
    pub async fn list(
        &self,
        customer_id: Option<Uuid>,
        offset: u64,
        limit: usize,
    ) -> Result<Listed<Session>, ServiceError> {
        let owner = customer_id.map(|id| id.to_string());
        let page = self.0.page(owner.as_deref(), offset, limit).await?;
        let read = |(id, view): &(Uuid, ScopeView)| {
            let session = session(*id, view);
            let log = |error: &ServiceError| tracing::error!(%error, "unreadable session skipped");
            session.inspect_err(log).ok()
        };
        Ok(Listed {
            items: page.items.iter().filter_map(read).collect(),
            next_offset: page.next_offset,
        })
    }

    /// Merges `patch` into the metadata. A null value removes a member.
    pub async fn patch(&self, id: Uuid, patch: &SessionMetadata) -> Result<Session, ServiceError> {
        let scope = self.0.scope(id);
        let policy = self.0.scopes.policy(&scope);
        let changed = self.0.scopes.change_record(&scope, |view| {
            let mut record = existing(view)?;
            record.of.metadata.merge(patch);
            record.of.metadata.check()?;
            Ok((record.to_bytes(), ScopeWrite::new(&policy)))
        });
        self.get_after(id, changed).await
    }

    /// Clears all messages, and keys and tasks if requested.
    pub async fn clear(&self, id: Uuid, clearing: Clearing) -> Result<Session, ServiceError> {
        let scope = self.0.scope(id);
        let policy = self.0.scopes.policy(&scope);
        let parts = ScopeParts {
            tasks: true,
            record: true,
            ..ScopeParts::default()
        };
        let cleared = self.0.scopes.until_unchanged(async || {
            let view = self.0.scopes.read(&scope, &parts).await?;
            let record = unchanged(&view)?;
            if clearing.tool_state && clearing.keep_unfinished {
                view.tasks.check_keeps_unfinished(&[])?;
            }
            let clear = [KvOperation::Clear];
            let tasks = TasksChange {
                new: TaskList::default(),
                expected: Some(view.tasks_stamp),
            };
            let write = ScopeWrite {
                removes: Some(Removal::All),
                record: Some(&record),
                operations: if clearing.tool_state { &clear } else { &[] },
                tasks: clearing.tool_state.then_some(&tasks),
                ..ScopeWrite::new(&policy)
            };
            self.0.scopes.commit(&scope, &write).await
        });
        self.get_after(id, cleared).await
    }

    /// Runs `change` and then reads the session, within the time limit for one request.
    fn get_after<T>(
        &self,
        id: Uuid,
        change: impl Future<Output = Result<T, ServiceError>>,
    ) -> impl Future<Output = Result<Session, ServiceError>> {
        let changed = change.and_then(move |_| self.get(id));
        in_time(self.0.scopes.timeout, changed)
    }

    pub async fn delete(&self, id: Uuid) -> Result<(), ServiceError> {
        if self.0.end(id).await? {
            return Ok(());
        }
        Err(Refusal::ScopeNotFound.into())
    }

    /// Returns the scope id of a session, which need not exist.
    #[must_use]
    pub fn scope(&self, id: Uuid) -> ScopeId {
        self.0.scope(id)
    }

    /// Returns the scope that the session's tools use. Fails if the session does not exist.
    pub async fn tool_scope(&self, id: Uuid) -> Result<ScopeId, ServiceError> {
        self.0.get(id).await?;
        Ok(self.0.scope(id))
    }
}

/// Reads the record of an existing session. A scope without a record is not a session.
fn existing(view: &ScopeView) -> Result<Record<Described>, ServiceError> {
    if view.record.is_none() {
        return Err(Refusal::ScopeNotFound.into());
    }
    Ok(Record::read(view)?)
}

/// Makes a write conditional on the session's current record.
pub(super) fn unchanged(view: &ScopeView) -> Result<RecordChange, ServiceError> {
    let record = view.record.clone().ok_or(Refusal::ScopeNotFound)?;
    Ok(RecordChange {
        new: record.clone(),
        expected: Some(record),
    })
}

fn session(id: Uuid, view: &ScopeView) -> Result<Session, ServiceError> {
    let Described {
        customer_id,
        metadata,
    } = existing(view)?.of;
    Ok(Session {
        id,
        customer_id: customer_id.and_then(|id| id.parse().ok()),
        metadata,
        tools: ToolState::default(),
        message_count: view.history.len(),
        created_ms: view.created_ms,
        updated_ms: view.updated_ms,
    })
}
