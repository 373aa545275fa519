//! Stores runs. A run is a scope that ends when the client that executes the run reports that it is complete.

use uuid::Uuid;

use super::making::Record;
use super::run::{Completion, Described, Digested, Run, RunPlan, RunStatus};
use super::tool_state::{ToolState, read_tool_state};
use crate::attempts::in_time;
use crate::{Creation, ScopeService, ServiceError};
use threadkeep_domain::scope::{HistoryItem, RecordChange, ScopeId, ScopeWrite, StoredItem};
use threadkeep_domain::{Json, Refusal};
use threadkeep_store::{HistoryFrom, ScopeParts, ScopeView, StoreError};

#[derive(Debug, Clone)]
pub struct RunService {
    scopes: ScopeService,
}

/// Id of the history item that holds a run's outputs. This item is always the last one, because an ended run rejects
/// further items.
const OUTPUTS: &str = "outputs";

impl RunService {
    #[must_use]
    pub fn new(scopes: ScopeService) -> Self {
        Self { scopes }
    }

    /// Returns the run that an earlier attempt at the same request created, or `None` if there is no such run. The
    /// run's handle and session may no longer exist.
    pub async fn made(&self, making: &Creation) -> Result<Option<Run>, ServiceError> {
        if making.request.is_none() {
            return Ok(None);
        }
        let Some(view) = self.find(making.id).await? else {
            return Ok(None);
        };
        Ok(Some(Run::of(making.id, &making.same(view)?)?))
    }

    /// Creates a run, or returns the run that an earlier attempt at the same request created. The caller must check
    /// that the handle and the session exist.
    pub async fn create(&self, making: &Creation, plan: RunPlan) -> Result<Run, ServiceError> {
        let scope = ScopeId::Run(making.id);
        let policy = self.scopes.policy(&scope);
        let described = Described {
            status: RunStatus::Running,
            plan,
            error: None,
            outputs: None,
        };
        let record = RecordChange {
            new: Record::new(making, described).to_bytes(),
            expected: None,
        };
        let make = async || {
            let write = ScopeWrite {
                makes: true,
                record: Some(&record),
                ..ScopeWrite::new(&policy)
            };
            self.scopes.commit(&scope, &write).await.map(drop)
        };
        let made = making.once(async || self.find(making.id).await, make);
        let made = in_time(self.scopes.timeout, made).await?;
        Ok(Run::of(making.id, &made)?)
    }

    pub async fn get(&self, id: Uuid) -> Result<Run, ServiceError> {
        let view = self
            .scopes
            .read(&ScopeId::Run(id), &ScopeParts::RECORD)
            .await?;
        Ok(Run::of(id, &view)?)
    }

    /// Ends a run and stores its outputs in one step. An ended run rejects writes. Repeating the same completion
    /// changes nothing. A different completion fails with [`Refusal::ScopeEnded`].
    pub async fn complete(&self, id: Uuid, completion: &Completion) -> Result<Run, ServiceError> {
        let scope = ScopeId::Run(id);
        let policy = self.scopes.policy(&scope);
        let empty = Json::empty_object();
        let outputs = completion.outputs.as_ref().unwrap_or(&empty);
        let items = [HistoryItem {
            id: OUTPUTS.parse().expect("it is visible ASCII"),
            value: outputs.clone(),
        }];
        let ended = self.scopes.change_record(&scope, |view| {
            let mut record = Record::<Described>::read(view)?;
            if record.of.status != RunStatus::Running {
                return Err(Refusal::ScopeEnded.into());
            }
            record.of.status = completion.status;
            record.of.error.clone_from(&completion.error);
            record.of.outputs = Some(Digested::of(outputs.as_str()));
            let write = ScopeWrite {
                history: &items,
                seals: true,
                ..ScopeWrite::new(&policy)
            };
            Ok((record.to_bytes(), write))
        });
        let ended = async {
            match ended.await {
                Err(ServiceError::Refused(Refusal::ScopeEnded)) => {
                    let run = self.get(id).await?;
                    if run.has_ended_by(completion) {
                        Ok(run)
                    } else {
                        Err(Refusal::ScopeEnded.into())
                    }
                }
                Ok(_) => self.get(id).await,
                Err(error) => Err(error),
            }
        };
        in_time(self.scopes.timeout, ended).await
    }

    /// Returns the outputs as a JSON object. The object is empty until the run ends.
    pub async fn outputs(&self, run: &Run) -> Result<Json, ServiceError> {
        if run.outputs.is_none() {
            return Ok(Json::empty_object());
        }
        let scope = ScopeId::Run(run.id);
        let last = HistoryFrom::Before(u64::MAX);
        let page = self.scopes.history(&scope, last, 1).await?;
        let last = page.items.into_iter().next();
        let is_outputs = |last: &StoredItem| last.id.as_str() == OUTPUTS;
        let outputs = last.filter(is_outputs).map(|last| last.value);
        Ok(outputs.ok_or(StoreError::Corrupt("a run has lost its outputs"))?)
    }

    /// Returns the keys and tasks of a running or ended run, from the run's own scope or its state handle's scope.
    /// Fails with [`Refusal::ScopeNotFound`] if the handle no longer exists.
    pub async fn tool_state(&self, run: &Run) -> Result<ToolState, ServiceError> {
        let (_, state) = read_tool_state(&self.scopes, &run.scope()).await?;
        Ok(state)
    }

    /// Returns the scope that the run's tools use. Fails with [`Refusal::ScopeEnded`] if the run has ended.
    pub async fn tool_scope(&self, id: Uuid) -> Result<ScopeId, ServiceError> {
        let run = self.get(id).await?;
        match run.status {
            RunStatus::Running => Ok(run.scope()),
            _ => Err(Refusal::ScopeEnded.into()),
        }
    }

    /// Lists up to `limit` events about the run's state, starting after sequence number `after`.
    pub async fn told(
        &self,
        id: Uuid,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredItem>, ServiceError> {
        let from = HistoryFrom::After(after);
        let page = self.scopes.history(&ScopeId::Run(id), from, limit).await?;
        let events = page.items.into_iter();
        Ok(events.filter(|item| item.id.as_str() != OUTPUTS).collect())
    }

    async fn find(&self, id: Uuid) -> Result<Option<ScopeView>, ServiceError> {
        match self
            .scopes
            .read(&ScopeId::Run(id), &ScopeParts::RECORD)
            .await
        {
            Ok(view) => Ok(Some(view)),
            Err(ServiceError::Refused(Refusal::ScopeNotFound)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
