//! All that tools keep in a scope.

use crate::{ScopeService, ServiceError};
use threadkeep_domain::scope::{ScopeId, ScopeKey, ScopeValue, TaskList};
use threadkeep_store::{ScopeParts, ScopeView};

/// The keys and tasks of a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolState {
    /// Keys and values, sorted by the keys' bytes.
    pub kv: Vec<(ScopeKey, ScopeValue)>,
    /// The task list.
    pub tasks: TaskList,
}

/// How often values are read again because other keys have come meanwhile.
const ATTEMPTS: usize = 5;

/// The scope with its record, and what tools keep there, at one version; of a scope whose keys
/// change all the time, some keys that were there at once.
///
/// # Errors
/// As [`ScopeService::read`].
pub(super) async fn read_tool_state(
    scopes: &ScopeService,
    scope: &ScopeId,
) -> Result<(ScopeView, ToolState), ServiceError> {
    let mut keys = Vec::new();
    let mut attempts = 0;
    loop {
        let parts = ScopeParts {
            values: &keys,
            keys: true,
            tasks: true,
            record: true,
            ..ScopeParts::default()
        };
        let mut view = scopes.read(scope, &parts).await?;
        attempts += 1;
        if view.keys != keys && attempts < ATTEMPTS {
            keys = view.keys;
            continue;
        }
        let values = std::mem::take(&mut view.values);
        let kv = keys.into_iter().zip(values);
        let state = ToolState {
            kv: kv.filter_map(|(key, value)| Some((key, value?))).collect(),
            tasks: view.tasks.clone(),
        };
        return Ok((view, state));
    }
}
