//! The stateless tools of a response.

use serde::{Deserialize, Serialize};

use crate::Function;
use threadkeep_service::tools::StatelessTool;

/// The stateless tools that the model may call, by how the client asked for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatelessSet {
    /// Those of a tool server: calls of them are items of the type `mcp_call`.
    pub server: Option<StatelessServer>,
    /// Those that the client named by their own type, which is that of their items too.
    pub typed: Vec<StatelessTool>,
}

/// The tool server that stands for stateless tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatelessServer {
    /// The name that the client gave to it.
    pub label: String,
    /// The tools that the model may call.
    pub allowed: Vec<StatelessTool>,
}

impl StatelessSet {
    /// All of them.
    pub fn tools(&self) -> impl Iterator<Item = StatelessTool> {
        let of_server = self.server.iter().flat_map(|server| &server.allowed);
        of_server.chain(&self.typed).copied()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools().next().is_none()
    }

    /// The functions that a model is offered for them.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Function> {
        self.tools()
            .map(|tool| Function::of_server(tool.as_str(), tool.description(), &tool.schema()))
    }

    /// The tool of that name.
    pub(crate) fn find(&self, name: &str) -> Option<StatelessTool> {
        let named = name.parse().ok()?;
        self.tools().find(|tool| *tool == named)
    }

    /// The label of the tool server that has a tool; none for one with a type of its own.
    pub(crate) fn label_of(&self, tool: StatelessTool) -> Option<&str> {
        let server = self.server.as_ref()?;
        let has_it = server.allowed.contains(&tool);
        has_it.then_some(server.label.as_str())
    }
}
