//! Tool state of a response that is not part of a conversation. The state is discarded when the response ends.

use crate::values::course::Course;
use threadkeep_domain::scope::{Scope, ScopeId};
use threadkeep_domain::{Item, Json};
use threadkeep_service::tools::{Call, Outcome, Tool, Toolbox, scratch};
use threadkeep_service::{ScopeService, ServiceError};

#[derive(Debug)]
pub(crate) struct ScratchState {
    tools: Toolbox,
    scope: ScopeId,
}

impl ScratchState {
    /// Rebuilds the tool state: starts with an empty state, and repeats the response's earlier calls.
    pub(crate) async fn after(
        scopes: &ScopeService,
        course: &Course,
    ) -> Result<Self, ServiceError> {
        let (scopes, scope) = scratch(scopes);
        let state = Self {
            tools: Toolbox::new(scopes),
            scope,
        };
        for call in course.output.iter().filter_map(changing_call) {
            state.call(call).await?;
        }
        Ok(state)
    }

    pub(crate) async fn call(&self, call: Call) -> Result<Outcome, ServiceError> {
        let scope = Scope::Kept(self.scope.clone());
        self.tools.call(&scope, call).await
    }
}

/// Returns the call in `item` if the call changed the tool state.
fn changing_call(item: &Json) -> Option<Call> {
    let Item::Call(call) = Item::read(item.as_str())? else {
        return None;
    };
    let tool: Tool = call.name.parse().ok()?;
    let changes = !call.result?.is_error && !tool.only_reads();
    changes.then(|| Call::new(tool, call.arguments))
}
