//! Reads the tools of a request.
//!
//! Model APIs do not allow dots in tool names, but clients may use dots. The model therefore sees a name with
//! underscores instead of dots, and the client gets its own name back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::input::invalid;
use crate::modelrelay::RelayError;
use crate::modelrelay::error::wrong_body;
use crate::object::Object;
use threadkeep_domain::Json;
use threadkeep_responses::{Function, StateTools, StatelessServer, StatelessSet, ToolChoice};
use threadkeep_service::tools::{StatelessTool, Tool};

/// Maximum number of tools in a request. Model providers have the same limit.
pub(super) const TOOLS_MAX: usize = 128;
/// Maximum size of a tool name in bytes. All models accept names of this size.
const NAME_BYTES_MAX: usize = 64;
/// Server label for calls to the server's own tools. Clients of this protocol never see this label.
const LABEL: &str = "threadkeep";

/// A tool. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct GivenTool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Object<GivenFunction>>,
    #[serde(rename = "image_generation")]
    _image_generation: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct GivenFunction {
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct GivenChoice {
    #[serde(rename = "type")]
    kind: String,
    function: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Tools that the server runs on the state.
    pub(super) state: Option<StateTools>,
    /// Tools that the server runs without state.
    pub(super) stateless: StatelessSet,
    /// The client's definitions of the server's tools.
    pub(super) definitions: Vec<Function>,
    /// Functions that the client runs.
    pub(super) functions: Vec<Function>,
    /// Maps the tool names that models see to the client's names. Contains only names that differ.
    pub(super) names: BTreeMap<String, String>,
}

enum Runner {
    State(Tool),
    Stateless(StatelessTool),
    Client,
}

/// Returns `name` with underscores instead of dots, as models see it, or `None` if `name` is invalid.
pub(super) fn upstream_name(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_legal = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain);
    is_legal.then(|| name.replace('.', "_"))
}

impl Tools {
    pub(super) fn read(list: &[Object<GivenTool>]) -> Result<Self, RelayError> {
        if list.len() > TOOLS_MAX {
            let expected = format!("a list of at most {TOOLS_MAX} tools");
            return Err(invalid("tools", &expected));
        }
        let mut tools = Self::default();
        for (index, Object(tool)) in list.iter().enumerate() {
            tools.add(tool, &format!("tools[{index}]"))?;
        }
        Ok(tools)
    }

    fn add(&mut self, tool: &GivenTool, at: &str) -> Result<(), RelayError> {
        match tool.kind.as_str() {
            "function" => {}
            "image_generation" => {
                let name = StatelessTool::ImageGeneration.as_str();
                if self.has(name) {
                    return Err(duplicate_name(at, name));
                }
                self.stateless.typed.push(StatelessTool::ImageGeneration);
                return Ok(());
            }
            "web" | "x_search" | "code_execution" => {
                let text = format!("{at}: {} is a tool that only providers run", tool.kind);
                return Err(RelayError::Validation(text));
            }
            _ => return Err(invalid(&format!("{at}.type"), "function")),
        }
        let Some(Object(function)) = &tool.function else {
            return Err(invalid(&format!("{at}.function"), "an object"));
        };
        let given = function.name.as_deref().unwrap_or_default();
        let Some(name) = upstream_name(given) else {
            let expected = format!("1 to {NAME_BYTES_MAX} of A-Z, a-z, 0-9, '_', '-' and '.'");
            return Err(invalid(&format!("{at}.function.name"), &expected));
        };
        let parameters = function.parameters.as_deref().map(RawValue::get);
        if parameters.is_some_and(|parameters| !parameters.starts_with('{')) {
            return Err(invalid(&format!("{at}.function.parameters"), "an object"));
        }
        if self.has(&name) {
            return Err(duplicate_name(at, &name));
        }
        if given != name {
            self.names.insert(name.clone(), given.to_owned());
        }
        let defined = Function {
            name,
            description: function.description.clone(),
            parameters: parameters.map(Json::from_compact),
            strict: None,
            custom: None,
        };
        match runner_of(&defined.name) {
            Runner::State(tool) => {
                let state = self.state.get_or_insert_with(|| StateTools {
                    label: LABEL.into(),
                    allowed: Vec::new(),
                });
                state.allowed.push(tool.as_str().into());
                self.definitions.push(defined);
            }
            Runner::Stateless(StatelessTool::ImageGeneration) => {
                self.stateless.typed.push(StatelessTool::ImageGeneration);
                self.definitions.push(defined);
            }
            Runner::Stateless(tool) => {
                let server = self
                    .stateless
                    .server
                    .get_or_insert_with(|| StatelessServer {
                        label: LABEL.into(),
                        allowed: Vec::new(),
                    });
                server.allowed.push(tool);
                self.definitions.push(defined);
            }
            Runner::Client => self.functions.push(defined),
        }
        Ok(())
    }

    /// Returns whether a tool has this name for models.
    fn has(&self, name: &str) -> bool {
        let mut all = self.definitions.iter().chain(&self.functions);
        let mut stateless = self.stateless.tools();
        all.any(|function| function.name == name) || stateless.any(|tool| tool.as_str() == name)
    }

    fn is_empty(&self) -> bool {
        self.state.is_none() && self.stateless.is_empty() && self.functions.is_empty()
    }

    pub(super) fn choice(&self, choice: Option<&GivenChoice>) -> Result<ToolChoice, RelayError> {
        let Some(choice) = choice else {
            return Ok(ToolChoice::Auto);
        };
        match (choice.kind.as_str(), &choice.function) {
            ("auto", None) => Ok(ToolChoice::Auto),
            ("none", None) => Ok(ToolChoice::None),
            ("required", None) if self.is_empty() => {
                Err(invalid("tool_choice.type", "auto or none without tools"))
            }
            ("required", None) => Ok(ToolChoice::Required),
            ("required", Some(name)) => match upstream_name(name).filter(|name| self.has(name)) {
                Some(name) => Ok(ToolChoice::Function(name)),
                None => Err(invalid("tool_choice.function", "one of the tools")),
            },
            ("auto" | "none", Some(_)) => Err(wrong_body(
                "tool_choice.function goes with the type required",
            )),
            _ => Err(invalid("tool_choice.type", "auto, required or none")),
        }
    }
}

/// Returns the side that runs the function: the server if `name` is one of the server's own tools, otherwise the client.
fn runner_of(name: &str) -> Runner {
    let state = name.parse().map(Runner::State).ok();
    let stateless = || name.parse().map(Runner::Stateless).ok();
    state.or_else(stateless).unwrap_or(Runner::Client)
}

fn duplicate_name(at: &str, name: &str) -> RelayError {
    RelayError::Validation(format!("{at}: two tools are called {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: &str) -> Result<Tools, String> {
        let list: Vec<Object<GivenTool>> = serde_json::from_str(tools).unwrap();
        Tools::read(&list).map_err(|error| error.to_string())
    }

    fn function(name: &str) -> String {
        format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#)
    }

    #[test]
    fn the_server_runs_its_own_tools_and_the_client_runs_the_rest() {
        let list = ["kv.write", "tasks_read", "fs.search", "look"].map(function);
        let tools = read(&format!("[{}]", list.join(","))).unwrap();

        assert_eq!(
            tools.state.as_ref().unwrap().allowed,
            ["kv_write", "tasks_read"]
        );
        let web = ["web.search", "web_fetch", "image.generation"].map(function);
        let web = read(&format!("[{}]", web.join(","))).unwrap();
        let allowed = web.stateless.tools().map(StatelessTool::as_str);
        assert_eq!(
            allowed.collect::<Vec<_>>(),
            ["web_search", "web_fetch", "image_generation"]
        );
        let names = |functions: &[Function]| -> Vec<String> {
            functions
                .iter()
                .map(|function| function.name.clone())
                .collect()
        };
        assert_eq!(names(&tools.definitions), ["kv_write", "tasks_read"]);
        assert_eq!(names(&tools.functions), ["fs_search", "look"]);
        let differing = [("fs_search", "fs.search"), ("kv_write", "kv.write")];
        let differing = differing.map(|(upstream, own)| (upstream.to_owned(), own.to_owned()));
        assert_eq!(tools.names, differing.into());
        let choice = |kind: &str, function: Option<&str>| {
            let choice = GivenChoice {
                kind: kind.into(),
                function: function.map(Into::into),
            };
            tools.choice(Some(&choice)).ok()
        };
        let expected = ToolChoice::Function("kv_write".into());
        assert_eq!(choice("required", Some("kv.write")), Some(expected));
        assert_eq!(choice("required", None), Some(ToolChoice::Required));
        for (kind, function) in [
            ("required", Some("kv_read")),
            ("auto", Some("look")),
            ("any", None),
        ] {
            assert_eq!(choice(kind, function), None, "{kind}");
        }
    }

    #[test]
    fn unsupported_tools_are_rejected() {
        for (tools, message) in [
            (r#"[{"type":"web"}]"#.to_owned(), "only providers run"),
            (
                r#"[{"type":"x_search","x_search":{}}]"#.to_owned(),
                "x_search",
            ),
            (
                r#"[{"type":"code_execution"}]"#.to_owned(),
                "code_execution",
            ),
            (
                format!(
                    r#"[{{"type":"image_generation"}},{}]"#,
                    function("image_generation")
                ),
                "two tools are called image_generation",
            ),
            (r#"[{"type":"other"}]"#.to_owned(), "must be function"),
            (r#"[{"type":"function"}]"#.to_owned(), "tools[0].function"),
            (format!("[{}]", function("a b")), "function.name"),
            (format!("[{}]", function(&"x".repeat(65))), "function.name"),
            (
                format!("[{},{}]", function("fs.a"), function("fs_a")),
                "two tools are called fs_a",
            ),
            (
                r#"[{"type":"function","function":{"name":"f","parameters":[]}}]"#.to_owned(),
                "parameters",
            ),
        ] {
            let error = read(&tools).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
