use std::str::FromStr;

use serde_json::{Value, json};

use super::tool::Tool;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Entries of `tools` in OpenAI's chat completions.
    #[default]
    OpenAi,
    /// Entries of `tools` in Anthropic's messages.
    Anthropic,
    /// Entries of `tools` in the Model Context Protocol.
    Mcp,
    /// Entries of `tools` in ModelRelay's responses.
    ModelRelay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the format must be openai, anthropic, mcp or modelrelay")]
pub struct UnknownFormat;

impl Format {
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Mcp, Self::ModelRelay];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
            Self::ModelRelay => "modelrelay",
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let format = Self::ALL.into_iter().find(|format| format.as_str() == text);
        format.ok_or(UnknownFormat)
    }
}

/// Returns the definitions of all tools, as an array for requests to a model.
#[must_use]
pub fn definitions(format: Format) -> Value {
    Tool::ALL.map(|tool| definition(tool, format)).into()
}

#[must_use]
pub fn definition(tool: Tool, format: Format) -> Value {
    let (name, description) = (tool.as_str(), tool.description());
    let schema = tool.schema();
    match format {
        Format::OpenAi | Format::ModelRelay => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        }),
        Format::Anthropic => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        Format::Mcp => json!({
            "name": name,
            "title": tool.title(),
            "description": description,
            "inputSchema": schema,
            "outputSchema": tool.output_schema(),
            "annotations": hints(tool),
        }),
    }
}

/// Returns a tool's MCP annotations. `destructiveHint` and `idempotentHint` are set only for tools that write.
/// `openWorldHint` must be set explicitly because its default is true.
fn hints(tool: Tool) -> Value {
    if tool.only_reads() {
        return json!({"readOnlyHint": true, "openWorldHint": false});
    }
    json!({
        "readOnlyHint": false,
        "destructiveHint": tool.overwrites(),
        "idempotentHint": tool.is_idempotent(),
        "openWorldHint": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_self_contained_and_defines_its_required_fields() {
        for tool in Tool::ALL {
            let schema = tool.schema();
            let text = schema.to_string();

            assert!(!text.contains("$ref"), "{tool}");
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            for required in schema["required"].as_array().unwrap() {
                let name = required.as_str().unwrap();
                assert!(schema["properties"].get(name).is_some(), "{tool}: {name}");
            }
            assert!((1..=1_024).contains(&tool.description().len()), "{tool}");
        }
    }

    #[test]
    fn hints_describe_the_effects_of_a_call() {
        let read = definition(Tool::KvRead, Format::Mcp);
        let increment = definition(Tool::KvIncrement, Format::Mcp);
        let write = definition(Tool::KvWrite, Format::Mcp);

        assert_eq!(read["annotations"]["readOnlyHint"], true);
        assert_eq!(increment["annotations"]["destructiveHint"], false);
        assert_eq!(increment["annotations"]["idempotentHint"], false);
        assert_eq!(write["annotations"]["destructiveHint"], true);
        assert_eq!(write["annotations"]["idempotentHint"], true);
    }

    #[test]
    fn each_format_has_its_own_schema_field() {
        let pointers = [
            (Format::OpenAi, "/0/function/parameters/required/0"),
            (Format::Anthropic, "/0/input_schema/required/0"),
            (Format::Mcp, "/0/inputSchema/required/0"),
            (Format::ModelRelay, "/0/function/parameters/required/0"),
        ];
        for (format, pointer) in pointers {
            let tools = definitions(format);
            assert_eq!(tools.pointer(pointer).unwrap(), "key", "{format:?}");
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        assert_eq!("OpenAI".parse::<Format>(), Err(UnknownFormat));
    }
}
