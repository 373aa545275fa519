//! Reads a `tool_choice` of the type `allowed_tools`.

use std::collections::HashSet;

use super::tools::{TOOLS_MAX, Tools, is_search};
use crate::openai::body::{object, required, string};
use crate::openai::fault::Fault;
use threadkeep_domain::{elements, given};
use threadkeep_responses::ToolChoice;
use threadkeep_service::tools::StatelessTool;

const TOOLS: &str = "tool_choice.tools";

impl Tools {
    /// Drops all tools that `choice` does not allow.
    pub(super) fn allow_only(&mut self, choice: &str) -> Result<ToolChoice, Fault> {
        let mode = match given(choice, "mode") {
            None | Some(r#""auto""#) => ToolChoice::Auto,
            Some(r#""required""#) => ToolChoice::Required,
            Some(r#""none""#) => ToolChoice::None,
            Some(_) => {
                let expected = "'auto', 'required' or 'none'";
                return Err(Fault::wrong_value("tool_choice.mode", expected));
            }
        };
        let list = given(choice, "tools").ok_or_else(|| Fault::missing(TOOLS))?;
        if !list.starts_with('[') {
            return Err(Fault::wrong_type(TOOLS, "an array of objects"));
        }
        let mut allowed = HashSet::new();
        for (index, tool) in elements(list).enumerate() {
            if index >= TOOLS_MAX {
                let expected = format!("an array with at most {TOOLS_MAX} tools");
                return Err(Fault::wrong_value(TOOLS, &expected));
            }
            allowed.extend(self.named_by(tool, &format!("{TOOLS}[{index}]"))?);
        }
        if allowed.is_empty() {
            return Err(Fault::wrong_value(TOOLS, "an array with a tool"));
        }
        let is_allowed = |name: &str| allowed.contains(name);
        if let Some(state) = &mut self.state {
            state.allowed.retain(|name| is_allowed(name));
        }
        if let Some(server) = &mut self.stateless.server {
            server.allowed.retain(|tool| is_allowed(tool.as_str()));
        }
        let typed = &mut self.stateless.typed;
        typed.retain(|tool| is_allowed(tool.as_str()));
        self.functions.retain(|function| is_allowed(&function.name));
        Ok(mode)
    }

    /// Returns the functions that an entry of `allowed_tools` names.
    ///
    /// The type of the entry is `function` or `custom` (with a name), `mcp` (with a server label and optionally a
    /// name), `web_search` or `image_generation`.
    fn named_by(&self, tool: &str, at: &str) -> Result<Vec<String>, Fault> {
        object(tool, at)?;
        let is_typed = |tool: &StatelessTool| self.stateless.typed.contains(tool);
        let typed = |tool| {
            Some(tool)
                .filter(is_typed)
                .map(|tool| tool.as_str().to_owned())
        };
        let named: Vec<String> = match required(tool, "type", at)?.as_str() {
            "function" | "custom" => {
                let name = required(tool, "name", at)?;
                let functions = self.functions.iter().map(|function| &function.name);
                functions.filter(|known| **known == name).cloned().collect()
            }
            "mcp" => {
                let label = required(tool, "server_label", at)?;
                let name = given(tool, "name");
                let name = name.map(|name| string(name, &format!("{at}.name")));
                let name = name.transpose()?;
                let is_named = |known: &String| name.as_ref().is_none_or(|name| name == known);
                self.names_of_server(&label).filter(is_named).collect()
            }
            kind if is_search(kind) => typed(StatelessTool::WebSearch).into_iter().collect(),
            "image_generation" => typed(StatelessTool::ImageGeneration).into_iter().collect(),
            _ => {
                let expected = "'function', 'custom', 'mcp', 'web_search' or 'image_generation'";
                return Err(Fault::wrong_value(format!("{at}.type"), expected));
            }
        };
        match named.is_empty() {
            true => Err(Fault::wrong_value(at, "a tool of the request")),
            false => Ok(named),
        }
    }

    fn names_of_server(&self, label: &str) -> impl Iterator<Item = String> {
        let state = self.state.iter().filter(move |state| state.label == label);
        let state = state.flat_map(|state| state.allowed.iter().cloned());
        let web = self.stateless.server.iter();
        let web = web.filter(move |server| server.label == label);
        let web = web.flat_map(|server| &server.allowed);
        state.chain(web.map(|tool| tool.as_str().to_owned()))
    }
}
