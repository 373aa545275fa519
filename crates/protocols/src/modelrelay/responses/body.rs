use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use super::context::Context;
use super::input::{INPUT_MAX, Input, invalid};
use super::tools::{GivenChoice, GivenTool, TOOLS_MAX, Tools};
use crate::leading::Leading;
use crate::modelrelay::RelayError;
use crate::object::Object;
use threadkeep_domain::{Json, ResponseId, ResponseLimits};
use threadkeep_responses::{Parameters, Protocol, ResponseRequest, ToolChoice};

const MODEL_BYTES_MAX: usize = 128;
/// Maximum number of stop sequences.
const STOPS_MAX: usize = 8;
const STOP_CHARS_MAX: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResponsesBody {
    input: Leading<Box<RawValue>, { INPUT_MAX + 1 }>,
    model: Option<String>,
    #[serde(rename = "provider")]
    _provider: Option<String>,
    tools: Option<Leading<Object<GivenTool>, { TOOLS_MAX + 1 }>>,
    tool_choice: Option<Object<GivenChoice>>,
    state_id: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
    max_output_tokens: Option<u64>,
    temperature: Option<Box<RawValue>>,
    stop: Option<Leading<String, { STOPS_MAX + 1 }>>,
    output_format: Option<Object<OutputFormat>>,
    threadkeep: Option<Object<Extension>>,
}

#[derive(Deserialize)]
struct OutputFormat {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<Object<JsonSchema>>,
}

#[derive(Deserialize)]
struct JsonSchema {
    name: String,
    description: Option<String>,
    schema: Option<Box<RawValue>>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    #[serde(default)]
    history: bool,
}

/// A parsed request, for a response that has no id yet.
pub(super) struct ParsedRequest {
    pub(super) context: Context,
    pub(super) model: String,
    input: Input,
    tools: Tools,
    choice: ToolChoice,
    parameters: Parameters,
    is_json: bool,
}

pub(super) struct ResponseOptions {
    pub(super) id: ResponseId,
    pub(super) created_ms: u64,
    pub(super) is_streamed: bool,
    pub(super) is_repeatable: bool,
}

/// The parts of a request that its answer needs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Echo {
    created_at: u64,
    model: String,
    /// Maps the tool names that models see to the client's names, if the names differ.
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// True if the text of the answer is a JSON document.
    #[serde(default)]
    pub(super) is_json: bool,
}

impl ResponsesBody {
    pub(super) fn read(self, limits: &ResponseLimits) -> Result<ParsedRequest, RelayError> {
        let has_history = self.threadkeep.as_ref().is_some_and(|own| own.0.history);
        let ids = [&self.state_id, &self.session_id, &self.run_id];
        let context = Context::read(ids.map(|id| id.as_deref()), has_history)?;
        let is_named = |name: &String| (1..=MODEL_BYTES_MAX).contains(&name.len());
        let Some(model) = self.model.clone().filter(is_named) else {
            let expected = format!("the name of a model, of 1 to {MODEL_BYTES_MAX} bytes");
            return Err(invalid("model", &expected));
        };
        let tools = Tools::read(self.tools.as_deref().unwrap_or_default())?;
        let choice = tools.choice(self.tool_choice.as_ref().map(|choice| &choice.0))?;
        let parameters = self.parameters()?;
        let input = Input::read(&self.input)?;
        let counted_bytes = input.counted_bytes();
        if counted_bytes > limits.max_bytes {
            let limit_bytes = limits.max_bytes;
            return Err(RelayError::BodyTooLarge { limit_bytes });
        }
        Ok(ParsedRequest {
            context,
            model,
            input,
            choice,
            is_json: parameters.text.is_some(),
            parameters,
            tools,
        })
    }

    fn parameters(&self) -> Result<Parameters, RelayError> {
        if self.max_output_tokens == Some(0) {
            return Err(invalid("max_output_tokens", "1 or more"));
        }
        let temperature = self.temperature.as_deref().map(RawValue::get);
        let is_number =
            |json: &str| json.starts_with(|char: char| char == '-' || char.is_ascii_digit());
        if !temperature.is_none_or(is_number) {
            return Err(invalid("temperature", "a number"));
        }
        let stop = self.stop.as_deref().unwrap_or_default();
        let is_legal = |text: &String| (1..=STOP_CHARS_MAX).contains(&text.chars().count());
        if stop.len() > STOPS_MAX || !stop.iter().all(is_legal) {
            let expected = format!("at most {STOPS_MAX} texts of 1 to {STOP_CHARS_MAX} characters");
            return Err(invalid("stop", &expected));
        }
        let text = self
            .output_format
            .as_ref()
            .map(|Object(format)| format.text());
        Ok(Parameters {
            max_output_tokens: self.max_output_tokens,
            temperature: temperature.map(Json::from_compact),
            text: text.transpose()?.flatten(),
            stop: (!stop.is_empty()).then(|| Json::from_strings(stop)),
            ..Parameters::default()
        })
    }
}

impl OutputFormat {
    /// Converts the format to the format of OpenAI's Responses API. Returns `None` for plain text.
    fn text(&self) -> Result<Option<Json>, RelayError> {
        let schema = match (self.kind.as_str(), &self.json_schema) {
            ("text", None) => return Ok(None),
            ("json_schema", Some(Object(schema))) => schema,
            ("json_schema", None) => {
                return Err(invalid("output_format.json_schema", "a schema with a name"));
            }
            _ => {
                let expected = "text, or json_schema with a schema";
                return Err(invalid("output_format.type", expected));
            }
        };
        let given = schema.schema.as_deref().map_or("{}", RawValue::get);
        if !given.starts_with('{') {
            return Err(invalid("output_format.json_schema.schema", "an object"));
        }
        let name = serde_json::Value::from(schema.name.as_str());
        let mut format =
            format!(r#"{{"format":{{"type":"json_schema","name":{name},"schema":{given}"#);
        if let Some(description) = &schema.description {
            let description = serde_json::Value::from(description.as_str());
            format.push_str(&format!(r#","description":{description}"#));
        }
        if let Some(strict) = schema.strict {
            format.push_str(&format!(r#","strict":{strict}"#));
        }
        format.push_str("}}");
        Ok(Some(Json::from_compact(format)))
    }
}

impl ParsedRequest {
    pub(super) fn into_request(self, options: &ResponseOptions) -> ResponseRequest {
        let echo = Echo {
            created_at: options.created_ms / 1_000,
            model: self.model.clone(),
            names: self.tools.names,
            is_json: self.is_json,
        };
        let echo = serde_json::to_string(&echo).expect("an echo has text for keys");
        ResponseRequest {
            protocol: Protocol::ModelRelay,
            context: self.context.for_response(),
            model: self.model,
            input: self.input.items(&options.id, options.created_ms),
            instructions: self.input.instructions,
            state_tools: self.tools.state,
            stateless: self.tools.stateless,
            definitions: self.tools.definitions,
            functions: self.tools.functions,
            choice: self.choice,
            parameters: self.parameters,
            max_tool_calls: None,
            window_exchanges: None,
            messages: None,
            after: None,
            continued: None,
            is_streamed: options.is_streamed,
            is_background: false,
            // later reads cannot get the response; only a repeated request can
            is_kept: false,
            is_repeatable: options.is_repeatable,
            created_ms: options.created_ms,
            echo: Json::from_compact(echo),
        }
    }
}

impl Echo {
    /// Reads the parts of a request that its answer needs. Returns the default for a request of a different protocol.
    pub(super) fn of(request: &ResponseRequest) -> Self {
        serde_json::from_str(request.echo.as_str()).unwrap_or_default()
    }

    /// Returns the client's name for a function.
    pub(super) fn client_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}
