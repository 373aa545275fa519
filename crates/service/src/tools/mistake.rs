//! Reports a model's mistakes as messages that the model can act on.

use super::tool::Tool;
use crate::ServiceError;
use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{ScopeError, TaskError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake(pub(super) String);

#[derive(Debug)]
pub(super) enum Failure {
    /// Reported to the model.
    Mistake(Mistake),
    /// Reported to the client that sent the request.
    Error(ServiceError),
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

/// Returns the mistake for an invalid key or value.
pub(super) fn of_part(tool: Tool, error: ScopeError) -> Mistake {
    let tool = tool.dotted();
    Mistake(match error {
        ScopeError::KeyFormat => {
            format!("{tool} key must be namespaced (segments separated by /, using [A-Za-z0-9_.-])")
        }
        ScopeError::KeyTooLong { limit_bytes } => format!("{tool} key exceeds {limit_bytes} bytes"),
        ScopeError::ValueTooLarge { limit_bytes } => {
            format!("kv value exceeds {limit_bytes} bytes")
        }
        error => format!("{tool}: {error}"),
    })
}

/// Returns the mistake for a write whose data would be discarded at the end of the request.
pub(super) fn of_no_context(tool: Tool) -> Mistake {
    let tool = tool.dotted();
    Mistake(format!("{tool} requires run or session context"))
}

/// Converts a rejection caused by the model to a mistake. Returns all other errors unchanged.
pub(super) fn sort(tool: Tool, error: ServiceError) -> Failure {
    let text = match &error {
        ServiceError::Refused(refusal) => of_refusal(tool, refusal),
        ServiceError::Tasks(error) => Some(of_tasks(tool, error)),
        _ => None,
    };
    match text {
        Some(text) => Failure::Mistake(Mistake(text)),
        None => Failure::Error(error),
    }
}

/// Returns the text for a model whose call the store rejected, or `None` if the model did not cause the rejection.
pub fn of_refusal(tool: Tool, refusal: &Refusal) -> Option<String> {
    let tool = tool.dotted();
    Some(match refusal {
        Refusal::KvTooLarge { limit_bytes, .. } => format!("kv exceeds {limit_bytes} bytes"),
        Refusal::TooManyKeys { limit_keys } => format!("kv exceeds {limit_keys} keys"),
        Refusal::VersionMismatch { current } => {
            let version = current.version;
            format!("{tool} if_version does not match: the current version is {version}")
        }
        Refusal::NotAnInteger { .. } => format!("{tool} value is not an integer"),
        Refusal::IntegerOverflow { .. } => {
            format!("{tool} value would not fit an integer of 64 bits")
        }
        // a run's events are stored in its history
        Refusal::HistoryTooLarge { limit_bytes, .. } => {
            format!("{tool} refused: the events of the run exceed {limit_bytes} bytes")
        }
        _ => return None,
    })
}

fn of_tasks(tool: Tool, error: &TaskError) -> String {
    let tool = tool.dotted();
    match error {
        TaskError::NotFound => format!("{tool} found no such task; tasks.read lists them"),
        TaskError::WouldDropUnfinished { count } => {
            format!("{tool} would drop unfinished tasks: {count}")
        }
        TaskError::TooMany { .. } | TaskError::TooLarge { .. } => error.to_string(),
        TaskError::NoContent | TaskError::SameId { .. } | TaskError::Id => {
            format!("{tool}: {error}")
        }
    }
}
