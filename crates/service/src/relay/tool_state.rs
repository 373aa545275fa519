use crate::{ScopeService, ServiceError};
use threadkeep_domain::scope::{ScopeId, ScopeKey, ScopeValue, TaskList};
use threadkeep_store::{ScopeParts, ScopeView};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolState {
    /// In the byte order of the keys.
    pub kv: Vec<(ScopeKey, ScopeValue)>,
    pub tasks: TaskList,
}

/// Maximum number of reads while other writers add or remove keys.
const ATTEMPTS: usize = 5;

/// Reads the record, keys and tasks of a scope at one version. If other writers keep adding keys, the result may omit
/// some of those keys.
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
