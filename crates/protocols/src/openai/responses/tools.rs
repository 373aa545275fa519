use std::collections::HashSet;
use std::str::FromStr;

use crate::openai::body::{object, required, string};
use crate::openai::fault::Fault;
use threadkeep_domain::{Json, elements, given};
use threadkeep_responses::{
    CustomTool, Function, StateTools, StatelessServer, StatelessSet, ToolChoice,
};
use threadkeep_service::tools::{StatelessTool, Tool};

/// Maximum number of tools in a request. Model providers have the same limit.
pub(super) const TOOLS_MAX: usize = 128;
/// The types of `tool_choice` that name tools.
const CHOICES: &str =
    "'function', 'custom', 'mcp', 'web_search', 'image_generation' or 'allowed_tools'";
/// URL that stands for this server's state tools.
const STATE: &str = "threadkeep:memory";
/// URL that stands for this server's tools for reading the web.
const WEB: &str = "threadkeep:web";
/// Fields of `web_search` that must be `auto` if present, because this server would ignore other values.
static SEARCH_FIELDS: [&str; 1] = ["filters"];
/// Fields of `image_generation` that must be `auto` if present, because this server would ignore other values.
static IMAGE_FIELDS: [&str; 8] = [
    "background",
    "input_fidelity",
    "input_image_mask",
    "model",
    "output_compression",
    "output_format",
    "quality",
    "size",
];

#[derive(Default)]
pub(super) struct Tools {
    pub(super) state: Option<StateTools>,
    pub(super) stateless: StatelessSet,
    pub(super) functions: Vec<Function>,
}

impl Tools {
    pub(super) fn read(list: Option<&str>) -> Result<Self, Fault> {
        let mut tools = Self::default();
        let Some(list) = list else {
            return Ok(tools);
        };
        if !list.starts_with('[') {
            return Err(Fault::wrong_type("tools", "an array of objects"));
        }
        let mut names = HashSet::new();
        for (index, tool) in elements(list).enumerate() {
            let at = format!("tools[{index}]");
            if index >= TOOLS_MAX {
                let expected = format!("an array with at most {TOOLS_MAX} tools");
                return Err(Fault::wrong_value("tools", &expected));
            }
            object(tool, &at)?;
            let added = tools.add(tool, &at)?;
            if let Some(duplicate) = added.into_iter().find(|name| !names.insert(name.clone())) {
                let message = format!("Two tools are called '{duplicate}'.");
                return Err(Fault::new("duplicate_tool", at, message));
            }
        }
        Ok(tools)
    }

    /// Adds a tool, and returns the names of its functions.
    fn add(&mut self, tool: &str, at: &str) -> Result<Vec<String>, Fault> {
        let kind = required(tool, "type", at)?;
        match kind.as_str() {
            "function" | "custom" => {
                let function = match kind.as_str() {
                    "function" => read_function(tool, at)?,
                    _ => read_custom(tool, at)?,
                };
                let name = function.name.clone();
                self.functions.push(function);
                Ok(vec![name])
            }
            "mcp" => self.add_server(tool, at),
            kind if is_search(kind) => {
                self.add_typed(StatelessTool::WebSearch, tool, &SEARCH_FIELDS, at)
            }
            "image_generation" => {
                self.add_typed(StatelessTool::ImageGeneration, tool, &IMAGE_FIELDS, at)
            }
            _ => Err(unsupported(
                &format!("{at}.type"),
                "'function', 'custom', 'web_search', 'image_generation', or 'mcp' with the tools of this server",
            )),
        }
    }

    /// Adds an MCP server that stands for tools of this server.
    fn add_server(&mut self, tool: &str, at: &str) -> Result<Vec<String>, Fault> {
        if given(tool, "connector_id").is_some() {
            let expected = "none: this server calls no other tool servers";
            return Err(unsupported(&format!("{at}.connector_id"), expected));
        }
        let url = required(tool, "server_url", at)?;
        if url != STATE && url != WEB {
            let expected = format!("'{STATE}' or '{WEB}': this server calls no other tool servers");
            return Err(unsupported(&format!("{at}.server_url"), &expected));
        }
        let approval = given(tool, "require_approval");
        if approval.is_some_and(|approval| approval != r#""never""#) {
            let path = format!("{at}.require_approval");
            return Err(unsupported(&path, "'never'"));
        }
        let label = required(tool, "server_label", at)?;
        let allowed = given(tool, "allowed_tools");
        // rejects a tool server that is listed twice, because each of the server's tools would have two labels
        let duplicate = |kind: &str| {
            let message = format!("The {kind} tools are given twice.");
            Err(Fault::new("duplicate_tool", at, message))
        };
        if url == WEB {
            let tools = read_allowed(allowed, at, StatelessTool::WEB, StatelessTool::as_str)?;
            if self.stateless.server.is_some() {
                return duplicate("web");
            }
            let names = tools.iter().map(|tool| tool.as_str().to_owned()).collect();
            self.stateless.server = Some(StatelessServer {
                label,
                allowed: tools,
            });
            return Ok(names);
        }
        let tools = read_allowed(allowed, at, Tool::ALL, Tool::as_str)?;
        if self.state.is_some() {
            return duplicate("state");
        }
        let allowed: Vec<_> = tools.iter().map(|tool| tool.as_str().to_owned()).collect();
        let names = allowed.clone();
        self.state = Some(StateTools { label, allowed });
        Ok(names)
    }

    /// Adds a tool that has its own type.
    fn add_typed(
        &mut self,
        typed: StatelessTool,
        tool: &str,
        fields: &[&str],
        at: &str,
    ) -> Result<Vec<String>, Fault> {
        for name in fields {
            if given(tool, name).is_some_and(|value| value != r#""auto""#) {
                let path = format!("{at}.{name}");
                return Err(unsupported(&path, "none or 'auto'"));
            }
        }
        self.stateless.typed.push(typed);
        Ok(vec![typed.as_str().into()])
    }

    /// Returns the names of all functions and tools that are offered to the model.
    fn names<'a>(&'a self) -> impl Iterator<Item = &'a str> {
        let functions = self.functions.iter().map(|function| function.name.as_str());
        let state = self.state.iter().flat_map(|state| &state.allowed);
        let stateless = self.stateless.tools();
        let stateless = stateless.map(|tool| -> &'a str { tool.as_str() });
        functions.chain(state.map(String::as_str)).chain(stateless)
    }

    /// Reads `tool_choice`. With `allowed_tools`, only the allowed tools are offered to the model. If the model calls a
    /// different tool, that call is handled like a call to an unknown tool.
    pub(super) fn choose(&mut self, choice: Option<&str>) -> Result<ToolChoice, Fault> {
        let expected = "'auto', 'none', 'required', 'allowed_tools' or a function of the request";
        let has_tools = self.names().next().is_some();
        let chosen = match choice {
            None | Some(r#""auto""#) => return Ok(ToolChoice::Auto),
            Some(r#""none""#) => return Ok(ToolChoice::None),
            Some(r#""required""#) => ToolChoice::Required,
            Some(object) if object.starts_with('{') => {
                let name = match required(object, "type", "tool_choice")?.as_str() {
                    "allowed_tools" => return self.allow_only(object),
                    kind if is_search(kind) => StatelessTool::WebSearch.as_str().to_owned(),
                    "image_generation" => StatelessTool::ImageGeneration.as_str().to_owned(),
                    "function" | "custom" | "mcp" => required(object, "name", "tool_choice")?,
                    _ => return Err(Fault::wrong_value("tool_choice.type", CHOICES)),
                };
                match self.names().any(|known| known == name) {
                    true => ToolChoice::Function(name),
                    false => return Err(Fault::wrong_value("tool_choice", expected)),
                }
            }
            Some(_) => return Err(Fault::wrong_value("tool_choice", expected)),
        };
        match has_tools {
            true => Ok(chosen),
            false => Err(Fault::wrong_value(
                "tool_choice",
                "'auto' or 'none', as there are no tools",
            )),
        }
    }
}

/// Returns whether `kind` is a web search tool: `web_search` or the older `web_search_preview`, optionally followed by
/// a date, such as `web_search_2025_08_26`.
pub(super) fn is_search(kind: &str) -> bool {
    let Some(rest) = kind.strip_prefix("web_search") else {
        return false;
    };
    let date = rest.strip_prefix("_preview").unwrap_or(rest);
    let is_of_date = |(index, byte): (usize, u8)| match index {
        0 | 5 | 8 => byte == b'_',
        _ => byte.is_ascii_digit(),
    };
    date.is_empty() || date.len() == 11 && date.bytes().enumerate().all(is_of_date)
}

fn unsupported(param: &str, expected: &str) -> Fault {
    Fault::unsupported("unsupported_tool", param, expected)
}

fn read_names(tool: &str, at: &str) -> Result<(String, Option<String>), Fault> {
    let name = required(tool, "name", at)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        let expected = "1 to 64 of A-Z, a-z, 0-9, '_' and '-'";
        return Err(Fault::wrong_value(format!("{at}.name"), expected));
    }
    let description = given(tool, "description");
    let description = description.map(|text| string(text, &format!("{at}.description")));
    Ok((name, description.transpose()?))
}

fn read_custom(tool: &str, at: &str) -> Result<Function, Fault> {
    let (name, description) = read_names(tool, at)?;
    let format = given(tool, "format");
    if let Some(format) = format {
        check_format(format, &format!("{at}.format"))?;
    }
    Ok(Function {
        name,
        description,
        parameters: None,
        strict: None,
        custom: Some(CustomTool {
            format: format.map(Json::from_compact),
        }),
    })
}

/// Checks the format of a custom tool. Rejects unknown formats, because otherwise the upstream request would omit them
/// without an error.
fn check_format(format: &str, at: &str) -> Result<(), Fault> {
    object(format, at)?;
    match required(format, "type", at)?.as_str() {
        "text" => Ok(()),
        "grammar" => {
            required(format, "syntax", at)?;
            required(format, "definition", at).map(drop)
        }
        _ => Err(unsupported(&format!("{at}.type"), "'text' or 'grammar'")),
    }
}

fn read_function(tool: &str, at: &str) -> Result<Function, Fault> {
    let (name, description) = read_names(tool, at)?;
    let parameters = given(tool, "parameters");
    if let Some(parameters) = parameters {
        object(parameters, format!("{at}.parameters"))?;
    }
    let strict = match given(tool, "strict") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Fault::wrong_type(format!("{at}.strict"), "a boolean")),
    };
    Ok(Function {
        name,
        description,
        parameters: parameters.map(Json::from_compact),
        strict,
        custom: None,
    })
}

/// Reads `allowed_tools`: an array of names, or `{"tool_names"}`. Returns all tools if `allowed` is `None`.
fn read_allowed<T: Copy + PartialEq + FromStr, const N: usize>(
    allowed: Option<&str>,
    at: &str,
    all: [T; N],
    name_of: fn(T) -> &'static str,
) -> Result<Vec<T>, Fault> {
    let Some(allowed) = allowed else {
        return Ok(all.to_vec());
    };
    let path = format!("{at}.allowed_tools");
    let list = match allowed.starts_with('{') {
        true => {
            if given(allowed, "read_only").is_some() {
                return Err(unsupported(&format!("{path}.read_only"), "none"));
            }
            let names = given(allowed, "tool_names");
            names.ok_or_else(|| Fault::missing(format!("{path}.tool_names")))?
        }
        false => allowed,
    };
    if !list.starts_with('[') {
        return Err(Fault::wrong_type(path, "an array of names"));
    }
    let mut tools = Vec::new();
    for name in elements(list) {
        let tool = string(name, &path)?.parse().ok();
        let tool = tool.filter(|tool| all.contains(tool)).ok_or_else(|| {
            let names = all.map(name_of).join(", ");
            Fault::wrong_value(&path, &format!("some of {names}"))
        })?;
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    Ok(tools)
}
