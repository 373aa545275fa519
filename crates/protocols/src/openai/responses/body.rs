//! Reads the body of a request for a response. Unknown fields are ignored, because clients may send new fields that
//! this server does not support yet.

use super::echo;
use super::input::read_input;
use super::parameters::read_parameters;
use super::tools::Tools;
use crate::openai::OpenAiError;
use crate::openai::body::{ObjectBody, object, string};
use crate::openai::fault::Fault;
use threadkeep_domain::{Key, ResponseId, ResponseLimits, ThreadId, given, member};
use threadkeep_responses::{MessageWindow, Protocol, ResponseContext, ResponseRequest};

pub(super) const DISABLED: &str = r#""disabled""#;
/// Maximum size of a response id from a different server.
const FOREIGN_MAX_BYTES: usize = 128;

pub(super) enum Context {
    /// A thread, which is created if it does not exist.
    Thread(ThreadId),
    /// The id of a conversation that must exist.
    Conversation(String),
    /// The conversation of a response.
    Previous(ResponseId),
    /// The conversation of a response, up to the end of that response. The conversation is read, but not changed.
    ReadOnly(ResponseId),
    /// A new conversation.
    New,
    /// No conversation. The response stores nothing.
    Nothing,
}

impl Context {
    pub(super) fn read(body: &ObjectBody) -> Result<Self, OpenAiError> {
        let previous = body.given("previous_response_id");
        let conversation = body.given("conversation");
        let is_unstored = flag(body, "store")? == Some(false);
        match (conversation, previous) {
            (Some(_), Some(_)) => Err(Fault::wrong_value(
                "previous_response_id",
                "null, as the request names a conversation",
            )
            .into()),
            (None, None) if is_unstored => Ok(Self::Nothing),
            (None, None) => Ok(Self::New),
            (None, Some(previous)) => {
                let id = string(previous, "previous_response_id")?;
                match id.parse() {
                    Ok(id) if is_unstored => Ok(Self::ReadOnly(id)),
                    Ok(id) => Ok(Self::Previous(id)),
                    // an id from a different server
                    Err(_) if id.starts_with("resp_") && id.len() <= FOREIGN_MAX_BYTES => {
                        Err(OpenAiError::NoPreviousResponse(id))
                    }
                    Err(_) => {
                        let expected = "the id of a response";
                        Err(Fault::wrong_value("previous_response_id", expected).into())
                    }
                }
            }
            (Some(conversation), None) => {
                let (json, path) = match conversation.starts_with('{') {
                    true => {
                        let id = member(conversation, "id");
                        let id = id.ok_or_else(|| Fault::missing("conversation.id"))?;
                        (id, "conversation.id")
                    }
                    false => (conversation, "conversation"),
                };
                let id = string(json, path)?;
                Ok(match id.parse() {
                    Ok(thread) => Self::Thread(thread),
                    Err(_) => Self::Conversation(id),
                })
            }
        }
    }
}

pub(super) fn read_request(
    body: &ObjectBody,
    id: &ResponseId,
    created_ms: u64,
    limits: &ResponseLimits,
    conversation: Option<&str>,
) -> Result<ResponseRequest, OpenAiError> {
    refuse_unsupported(body)?;
    let text = |name: &str| body.given(name).map(|json| string(json, name)).transpose();
    let model = text("model")?.ok_or_else(|| Fault::missing("model"))?;
    let instructions = text("instructions")?;
    let input = read_input(body.given("input"), (id, created_ms))?;
    let counted_bytes = input.iter().map(|item| item.counted_bytes).sum::<u64>();
    if counted_bytes > limits.max_bytes {
        return Err(threadkeep_web::ApiError::BodyTooLarge {
            limit_bytes: limits.max_bytes,
            read_bytes: counted_bytes,
        }
        .into());
    }
    let mut tools = Tools::read(body.given("tools"))?;
    let choice = tools.choose(body.given("tool_choice"))?;
    let is_kept = flag(body, "store")?.unwrap_or(true);
    if !is_kept && body.given("conversation").is_some() {
        let expected = "true, as the request names a conversation";
        return Err(Fault::wrong_value("store", expected).into());
    }
    let is_background = flag(body, "background")? == Some(true);
    if is_background && !is_kept {
        let expected = "true, as the response runs in the background";
        return Err(Fault::wrong_value("store", expected).into());
    }
    let extension = Extension::read(body)?;
    if !is_kept && extension.messages.is_some() {
        let expected = "true, as the state is to keep messages";
        return Err(Fault::wrong_value("store", expected).into());
    }
    let max_tool_calls = body.given("max_tool_calls");
    let max_tool_calls = max_tool_calls.map(|json| whole(json, "max_tool_calls", 1, 10_000));
    let flags = [is_background, is_kept];
    let echo = echo::stored_settings(body, &tools.functions, flags, conversation, created_ms)?;
    Ok(ResponseRequest {
        protocol: Protocol::OpenAi,
        context: match conversation {
            Some(_) => ResponseContext::Conversation,
            None => ResponseContext::Nothing,
        },
        model,
        instructions,
        input,
        state_tools: tools.state,
        stateless: tools.stateless,
        definitions: Vec::new(),
        functions: tools.functions,
        choice,
        parameters: read_parameters(body)?,
        max_tool_calls: max_tool_calls.transpose()?.map(|calls| calls as u32),
        window_exchanges: extension.window_exchanges,
        messages: extension.messages,
        after: None,
        continued: None,
        is_streamed: flag(body, "stream")? == Some(true),
        is_background,
        is_kept,
        is_repeatable: false,
        created_ms,
        echo,
    })
}

/// The member `threadkeep`, this server's extension.
#[derive(Default)]
struct Extension {
    window_exchanges: Option<u32>,
    messages: Option<MessageWindow>,
}

impl Extension {
    fn read(body: &ObjectBody) -> Result<Self, Fault> {
        let name = "threadkeep";
        let Some(extension) = body.given(name) else {
            return Ok(Self::default());
        };
        object(extension, name)?;
        let window = |responses| whole(responses, "threadkeep.window_turns", 1, 10_000);
        let window_exchanges = given(extension, "window_turns").map(window).transpose()?;
        Ok(Self {
            window_exchanges: window_exchanges.map(|responses| responses as u32),
            messages: given(extension, "messages").map(messages).transpose()?,
        })
    }
}

fn messages(json: &str) -> Result<MessageWindow, Fault> {
    let (name, key_name) = ("threadkeep.messages", "threadkeep.messages.key");
    object(json, name)?;
    let key = given(json, "key").ok_or_else(|| Fault::missing(key_name))?;
    let key = string(key, key_name)?;
    Key::new(&*key).map_err(|error| Fault::wrong_value(key_name, &error.to_string()))?;
    let max_records = |json| whole(json, "threadkeep.messages.max_records", 1, u64::MAX);
    Ok(MessageWindow {
        key,
        max_records: given(json, "max_records").map(max_records).transpose()?,
    })
}

/// Rejects fields and values that this server does not support but that would change the meaning of the request.
fn refuse_unsupported(body: &ObjectBody) -> Result<(), Fault> {
    let unsupported = |name: &str, code, expected: &str| {
        Fault::new(code, name, format!("Unsupported '{name}': {expected}."))
    };
    if body.given("prompt").is_some() {
        let expected = "this server keeps no prompts";
        return Err(unsupported("prompt", "unsupported_parameter", expected));
    }
    if !matches!(
        body.given("truncation"),
        None | Some(DISABLED | r#""auto""#)
    ) {
        let expected = "'auto' or 'disabled'";
        return Err(Fault::wrong_value("truncation", expected));
    }
    Ok(())
}

pub(super) fn flag(body: &ObjectBody, name: &str) -> Result<Option<bool>, Fault> {
    match body.given(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Fault::wrong_type(name, "a boolean")),
    }
}

pub(super) fn whole(json: &str, name: &str, min: u64, max: u64) -> Result<u64, Fault> {
    let Ok(number) = json.parse::<u64>() else {
        return Err(Fault::wrong_type(name, "a whole number"));
    };
    match (min..=max).contains(&number) {
        true => Ok(number),
        false => {
            let expected = format!("a whole number from {min} to {max}");
            Err(Fault::wrong_value(name, &expected))
        }
    }
}
