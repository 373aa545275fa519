use super::messages::{Conversation, conversation};
use crate::json::{Object, array, escaped_member, text};
use crate::names::Names;
use threadkeep_domain::{Json, PromptItem, member, quoted};
use threadkeep_responses::{Function, Parameters, Question, ToolChoice};

const ANY_OBJECT: &str = r#"{"type":"object"}"#;
/// Effort levels with the same name in OpenAI's API.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Writes the request body. Adds the names of all functions to `names`.
///
/// Omits fields that this API does not have: `temperature`, `top_p`, `text.verbosity`, formats other than
/// `json_schema`, and `prompt_cache_key`.
pub(super) fn write(
    question: &Question<'_>,
    max_output_tokens: u64,
    is_streamed: bool,
    names: &mut Names,
) -> String {
    let parameters = question.parameters;
    let max_tokens = parameters.max_output_tokens.unwrap_or(max_output_tokens);
    let thinking = Thinking::of(parameters);
    let tools = tools(question, &thinking, names);
    let Conversation { system, messages } = conversation(question, names);
    let body = Object::new()
        .text("model", question.model)
        .json("max_tokens", &max_tokens.to_string())
        .optional(
            "system",
            (!system.is_empty()).then(|| array(&system)).as_deref(),
        )
        .json("messages", &array(&messages))
        .flag("stream", is_streamed)
        .optional("tools", tools.as_ref().map(|(tools, _)| tools.as_str()))
        .optional(
            "tool_choice",
            tools.as_ref().and_then(|(_, choice)| choice.as_deref()),
        )
        .optional("thinking", thinking.config().as_deref())
        .optional(
            "output_config",
            output_config(parameters, &thinking).as_deref(),
        )
        .given("stop_sequences", parameters.stop.as_ref())
        .optional("metadata", metadata(parameters).as_deref());
    let tier = parameters.service_tier.as_ref().map(Json::as_str);
    let has_tier = |tier: &&str| ["\"auto\"", "\"standard_only\""].contains(tier);
    body.optional("service_tier", tier.filter(has_tier)).close()
}

/// Writes the body of a token count request, which accepts fewer fields.
pub(super) fn write_count_request(question: &Question<'_>) -> String {
    let names = &mut Names::default();
    let thinking = Thinking::of(question.parameters);
    let tools = tools(question, &thinking, names);
    let Conversation { system, messages } = conversation(question, names);
    let (tools, choice) = tools.unzip();
    Object::new()
        .text("model", question.model)
        .optional(
            "system",
            (!system.is_empty()).then(|| array(&system)).as_deref(),
        )
        .json("messages", &array(&messages))
        .optional("tools", tools.as_deref())
        .optional("tool_choice", choice.flatten().as_deref())
        .optional("thinking", thinking.config().as_deref())
        .optional(
            "output_config",
            output_config(question.parameters, &thinking).as_deref(),
        )
        .close()
}

/// Returns the name of the first field that would change the answer but has no equivalent in this API. Also checks
/// `include`, which can request log probabilities.
pub(super) fn lacks(parameters: &Parameters) -> Option<&'static str> {
    let fields = [
        (parameters.top_logprobs.is_some(), "top_logprobs"),
        (parameters.logprobs, "include"),
        (parameters.presence_penalty.is_some(), "presence_penalty"),
        (parameters.frequency_penalty.is_some(), "frequency_penalty"),
    ];
    let mut given = fields.into_iter().filter(|(is_given, _)| *is_given);
    given.next().map(|(_, name)| name)
}

enum Thinking {
    /// The model decides whether to think.
    Unset,
    Off,
    On {
        effort: Option<&'static str>,
        has_summary: bool,
    },
}

impl Thinking {
    fn of(parameters: &Parameters) -> Self {
        let reasoning = parameters.reasoning.as_ref().map_or("", Json::as_str);
        let has_summary = escaped_member(reasoning, "summary").is_some();
        let effort = match escaped_member(reasoning, "effort") {
            Some("none") => return Self::Off,
            Some("minimal") => Some("low"),
            Some(effort) => EFFORTS.into_iter().find(|known| *known == effort),
            None => None,
        };
        match effort {
            None if !has_summary => Self::Unset,
            effort => Self::On {
                effort,
                has_summary,
            },
        }
    }

    fn config(&self) -> Option<String> {
        match self {
            Self::Unset => None,
            Self::Off => Some(Object::of_type("disabled").close()),
            Self::On { has_summary, .. } => {
                let display = has_summary.then_some("\"summarized\"");
                let config = Object::of_type("adaptive");
                Some(config.optional("display", display).close())
            }
        }
    }
}

fn output_config(parameters: &Parameters, thinking: &Thinking) -> Option<String> {
    let effort = match thinking {
        Thinking::On { effort, .. } => effort.map(quoted),
        _ => None,
    };
    let text = parameters.text.as_ref().map_or("", Json::as_str);
    let format = member(text, "format").unwrap_or_default();
    let schema = member(format, "schema");
    let format = schema.filter(|_| escaped_member(format, "type") == Some("json_schema"));
    let format = format.map(|schema| {
        Object::of_type("json_schema")
            .json("schema", schema)
            .close()
    });
    let config = Object::new()
        .optional("effort", effort.as_deref())
        .optional("format", format.as_deref())
        .close();
    (config != "{}").then_some(config)
}

/// Returns the id of the end user, which helps the provider to detect abuse.
fn metadata(parameters: &Parameters) -> Option<String> {
    let ids = [&parameters.safety_identifier, &parameters.user];
    let mut ids = ids.into_iter().flatten().map(Json::as_str);
    let id = ids.find(|id| text(id).is_some_and(|id| !id.is_empty()))?;
    Some(Object::new().json("user_id", id).close())
}

/// Returns the tools and the tool choice. If the request has no functions, declares each function that the conversation
/// calls, because the API requires tools if there are calls.
fn tools(
    question: &Question<'_>,
    thinking: &Thinking,
    names: &mut Names,
) -> Option<(String, Option<String>)> {
    if !question.functions.is_empty() {
        let functions = question.functions.iter();
        let tools: Vec<_> = functions.map(|function| tool(function, names)).collect();
        return Some((array(&tools), choice(question, thinking, names)));
    }
    let mut called = Vec::new();
    for item in question.prompt {
        if let PromptItem::Call { name, .. } = item {
            called.push(names.encode(name));
        }
    }
    called.sort_unstable();
    called.dedup();
    let tools: Vec<_> = called
        .iter()
        .map(|name| {
            let tool = Object::new().text("name", name);
            tool.json("input_schema", ANY_OBJECT).close()
        })
        .collect();
    let none = Object::of_type("none").close();
    (!tools.is_empty()).then(|| (array(&tools), Some(none)))
}

fn tool(function: &Function, names: &mut Names) -> String {
    let description = function.description.as_deref().map(quoted);
    let parameters = function.parameters.as_ref().map(Json::as_str);
    let schema = parameters.filter(|schema| schema.starts_with('{') && *schema != "{}");
    Object::new()
        .text("name", &names.encode(&function.name))
        .optional("description", description.as_deref())
        .json("input_schema", schema.unwrap_or(ANY_OBJECT))
        .boolean("strict", function.strict)
        .close()
}

/// Returns the tool choice. While thinking is on, replaces a choice that forces a call, because the API rejects it.
fn choice(question: &Question<'_>, thinking: &Thinking, names: &mut Names) -> Option<String> {
    let is_thinking = matches!(thinking, Thinking::On { .. });
    let is_single = question.parameters.parallel_tool_calls == Some(false);
    let choice = match question.choice {
        ToolChoice::None => return Some(Object::of_type("none").close()),
        ToolChoice::Required if !is_thinking => Object::of_type("any"),
        ToolChoice::Function(name) if !is_thinking => {
            Object::of_type("tool").text("name", &names.encode(name))
        }
        ToolChoice::Auto if !is_single => return None,
        _ => Object::of_type("auto"),
    };
    let choice = choice.flag("disable_parallel_tool_use", is_single);
    Some(choice.close())
}

#[cfg(test)]
mod tests;
