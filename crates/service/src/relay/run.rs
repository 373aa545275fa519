use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::making::Record;
use threadkeep_domain::Json;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{ScopeView, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Succeeded,
    Failed,
    Canceled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// Message for people.
    pub message: String,
    /// Code for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// SHA-256 digest of the plan, in hex.
    pub plan_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// State handle that the tools use. Default: the run's own scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_id: Option<String>,
}

/// Size and SHA-256 digest of a text that is stored elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digested {
    pub bytes: u64,
    /// Encoded in hex.
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: Uuid,
    pub status: RunStatus,
    pub plan: RunPlan,
    pub error: Option<RunError>,
    /// `None` until the run has ended.
    pub outputs: Option<Digested>,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Time of the last change; for an ended run, the time at which it ended.
    pub updated_ms: u64,
    /// Sequence number of the last event about the run's state.
    pub last_event_seq: u64,
}

#[derive(Debug, Clone)]
pub struct Completion {
    /// Any status except `Running`.
    pub status: RunStatus,
    /// A JSON object. Default: `{}`.
    pub outputs: Option<Json>,
    pub error: Option<RunError>,
}

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
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            sha256: hex::encode(Sha256::digest(text)),
        }
    }
}

impl RunStatus {
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
    /// Returns the scope in which the run's tools store their state.
    pub fn scope(&self) -> ScopeId {
        let handle = self.plan.state_id.as_ref().and_then(|id| id.parse().ok());
        handle.map_or(ScopeId::Run(self.id), ScopeId::State)
    }

    /// Returns whether the run has ended with `completion`. A completion without outputs matches any outputs, and a
    /// completion without an error matches any error.
    pub(super) fn has_ended_by(&self, completion: &Completion) -> bool {
        let outputs = completion.outputs.as_ref();
        let outputs = outputs.map(|outputs| Digested::of(outputs.as_str()));
        let is_same_error = completion.error.is_none() || completion.error == self.error;
        self.status == completion.status
            && is_same_error
            && (outputs.is_none() || outputs == self.outputs)
    }

    pub(crate) fn of(id: Uuid, view: &ScopeView) -> Result<Self, StoreError> {
        let described = Record::<Described>::read(view)?.of;
        let last = view.history.next_seq.saturating_sub(1);
        Ok(Self {
            id,
            status: described.status,
            plan: described.plan,
            error: described.error,
            // the last item of an ended run holds its outputs
            last_event_seq: last.saturating_sub(u64::from(described.outputs.is_some())),
            outputs: described.outputs,
            created_ms: view.created_ms,
            updated_ms: view.updated_ms,
        })
    }
}
