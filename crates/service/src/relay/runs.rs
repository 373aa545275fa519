//! Runs: scopes with a life, which others carry out.

use uuid::Uuid;

use super::making::Record;
use super::run::{Completion, Described, Digested, Run, RunPlan, RunStatus};
use super::tool_state::{ToolState, read_tool_state};
use crate::attempts::in_time;
use crate::{Making, ScopeService, ServiceError};
use threadkeep_domain::scope::{HistoryItem, RecordChange, ScopeId, ScopeWrite, StoredItem};
use threadkeep_domain::{Json, Refusal};
use threadkeep_store::{HistoryFrom, ScopeParts, ScopeView, StoreError};

/// Makes and ends runs.
#[derive(Debug, Clone)]
pub struct RunService {
    scopes: ScopeService,
}

/// The id of the item of a run's history that is its outputs. It is the last one: nothing is added
/// to a run that has ended.
const OUTPUTS: &str = "outputs";

impl RunService {
    /// Runs as scopes.
    #[must_use]
    pub fn new(scopes: ScopeService) -> Self {
        Self { scopes }
    }

    /// The run of a repeated request, whether or not its handle and session still exist; none if it was not created
    /// yet.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn made(&self, making: &Making) -> Result<Option<Run>, ServiceError> {
        if making.request.is_none() {
            return Ok(None);
        }
        let Some(view) = self.find(making.id).await? else {
            return Ok(None);
        };
        Ok(Some(Run::of(making.id, &making.same(view)?)?))
    }

    /// Makes a run. A repeat answers the one that was made. That its handle and its session are
    /// there is for the caller to see.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::IdempotencyKeyReused`], or
    /// [`ServiceError::Store`].
    pub async fn create(&self, making: &Making, plan: RunPlan) -> Result<Run, ServiceError> {
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

    /// A run.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::ScopeNotFound`], or [`ServiceError::Store`].
    pub async fn get(&self, id: Uuid) -> Result<Run, ServiceError> {
        let view = self
            .scopes
            .read(&ScopeId::Run(id), &ScopeParts::RECORD)
            .await?;
        Ok(Run::of(id, &view)?)
    }

    /// Ends a run, in one step with its outputs; from then on it rejects writes. Ending it again in the same way
    /// changes nothing.
    ///
    /// # Errors
    /// [`Refusal::ScopeEnded`] if it has ended in another way, or as [`Self::get`].
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

    /// The outputs of a run, an object: `{}` before it has ended.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn outputs(&self, run: &Run) -> Result<Json, ServiceError> {
        if run.outputs.is_none() {
            return Ok(Json::empty_object());
        }
        let scope = ScopeId::Run(run.id);
        let last = HistoryFrom::Before(u64::MAX);
        let page = self.scopes.history(&scope, last, 1).await?;
        let last = page.items.into_iter().next();
        let is_it = |last: &StoredItem| last.id.as_str() == OUTPUTS;
        let outputs = last.filter(is_it).map(|last| last.value);
        Ok(outputs.ok_or(StoreError::Corrupt("a run has lost its outputs"))?)
    }

    /// The keys and tasks of a run, also after its end: in its own scope, or in that of its handle.
    ///
    /// # Errors
    /// As [`Self::get`]; [`Refusal::ScopeNotFound`] also if the handle is gone.
    pub async fn tool_state(&self, run: &Run) -> Result<ToolState, ServiceError> {
        let (_, state) = read_tool_state(&self.scopes, &run.scope()).await?;
        Ok(state)
    }

    /// The scope that tools use in a run.
    ///
    /// # Errors
    /// [`Refusal::ScopeEnded`] of one that has ended, or as [`Self::get`].
    pub async fn tool_scope(&self, id: Uuid) -> Result<ScopeId, ServiceError> {
        let run = self.get(id).await?;
        match run.status {
            RunStatus::Running => Ok(run.scope()),
            _ => Err(Refusal::ScopeEnded.into()),
        }
    }

    /// Up to `limit` events about a run's state after a place.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn told(
        &self,
        id: Uuid,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredItem>, ServiceError> {
        let from = HistoryFrom::After(after);
        let page = self.scopes.history(&ScopeId::Run(id), from, limit).await?;
        let told = page.items.into_iter();
        Ok(told.filter(|item| item.id.as_str() != OUTPUTS).collect())
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
