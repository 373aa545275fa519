use serde::{Deserialize, Serialize};

use crate::Function;
use threadkeep_service::tools::StatelessTool;

/// The stateless tools that the model may call, grouped by how the client requested them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatelessSet {
    /// Tools that the client requested as a tool server. Their calls are items of type `mcp_call`.
    pub server: Option<StatelessServer>,
    /// Tools that the client requested by type. The item type of a call is the tool type plus `_call`.
    pub typed: Vec<StatelessTool>,
}

/// A tool server that consists of stateless tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatelessServer {
    /// The client's name for the server.
    pub label: String,
    pub allowed: Vec<StatelessTool>,
}

impl StatelessSet {
    pub fn tools(&self) -> impl Iterator<Item = StatelessTool> {
        let of_server = self.server.iter().flat_map(|server| &server.allowed);
        of_server.chain(&self.typed).copied()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools().next().is_none()
    }

    /// Returns the tools as functions for a model.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Function> {
        self.tools()
            .map(|tool| Function::of_server(tool.as_str(), tool.description(), &tool.schema()))
    }

    pub(crate) fn find(&self, name: &str) -> Option<StatelessTool> {
        let named = name.parse().ok()?;
        self.tools().find(|tool| *tool == named)
    }

    /// Returns the label of the tool server that provides `tool`. Returns `None` for a tool with its own item type.
    pub(crate) fn label_of(&self, tool: StatelessTool) -> Option<&str> {
        let server = self.server.as_ref()?;
        let has_it = server.allowed.contains(&tool);
        has_it.then_some(server.label.as_str())
    }
}
