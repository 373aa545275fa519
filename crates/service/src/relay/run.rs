//! Runs.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::making::Record;
use threadkeep_domain::Json;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{ScopeView, StoreError};

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has not ended.
    Running,
    /// It has ended as it should.
    Succeeded,
    /// It has ended with an error.
    Failed,
    /// Somebody has ended it.
    Canceled,
}

/// Why a run has not succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// In words.
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// The plan of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The SHA-256 of the plan, in hex.
    pub plan_hash: String,
    /// Which workflow, by its maker's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The state handle that its tools use; without one, its own scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_id: Option<String>,
}

/// The digest of a text that is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digested {
    /// Its bytes.
    pub bytes: u64,
    /// Its SHA-256, in hex.
    pub sha256: String,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: Uuid,
    /// How it is doing.
    pub status: RunStatus,
    /// Its plan.
    pub plan: RunPlan,
    /// Why it has not succeeded.
    pub error: Option<RunError>,
    /// Its outputs, once it has ended.
    pub outputs: Option<Digested>,
    /// When it was made, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// When it was last changed; of one that has ended: when it ended.
    pub updated_ms: u64,
    /// The place of the last thing that it tells of its state.
    pub last_told: u64,
}

/// How a run ends.
#[derive(Debug, Clone)]
pub struct Completion {
    /// As what; not running.
    pub status: RunStatus,
    /// An object, by default `{}`.
    pub outputs: Option<Json>,
    /// Why it has not succeeded.
    pub error: Option<RunError>,
}

/// The record of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Described {
    pub(crate) status: RunStatus,
    pub(crate) plan: RunPlan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outputs: Option<Digested>,
}

impl Digested {
    /// The digest of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            sha256: hex::encode(Sha256::digest(text)),
        }
    }
}

impl RunStatus {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

impl Run {
    /// Where its tools keep their state.
    pub fn scope(&self) -> ScopeId {
        let handle = self.plan.state_id.as_ref().and_then(|id| id.parse().ok());
        handle.map_or(ScopeId::Run(self.id), ScopeId::State)
    }

    /// Whether it has ended like that. A completion without outputs matches any.
    pub(super) fn has_ended_by(&self, completion: &Completion) -> bool {
        let outputs = completion.outputs.as_ref();
        let outputs = outputs.map(|outputs| Digested::of(outputs.as_str()));
        let is_same_error = completion.error.is_none() || completion.error == self.error;
        self.status == completion.status
            && is_same_error
            && (outputs.is_none() || outputs == self.outputs)
    }

    /// The run of a scope.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the scope is not a run.
    pub(crate) fn of(id: Uuid, view: &ScopeView) -> Result<Self, StoreError> {
        let described = Record::<Described>::read(view)?.of;
        let last = view.history.next_seq.saturating_sub(1);
        Ok(Self {
            id,
            status: described.status,
            plan: described.plan,
            error: described.error,
            // the last item of a run that has ended is its outputs
            last_told: last.saturating_sub(u64::from(described.outputs.is_some())),
            outputs: described.outputs,
            created_ms: view.created_ms,
            updated_ms: view.updated_ms,
        })
    }
}
