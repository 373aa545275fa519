//! Reads requests that build the prompt of a response but do not run the response, such as token counts.

use std::iter::empty;

use super::body::{Context, read_request};
use super::target::{end_of, previous_response};
use super::{check_catalog, references};
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::conversations::find;
use crate::openai::fault::Fault;
use crate::openai::ids::thread_of;
use crate::openai::request::OpenAiRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{ResponseId, output_without_call};
use threadkeep_responses::{ResponseError, ResponseRequest};
use threadkeep_store::Clock;

/// Replaces an omitted input while the request is parsed.
const INPUT_PLACEHOLDER: &str = r#""-""#;

/// A request that is parsed like a request for a response.
pub(super) struct PromptRequest {
    /// Temporary id from which the ids of the request's items are derived. Nothing is stored under this id.
    pub(super) id: ResponseId,
    pub(super) request: ResponseRequest,
    /// The conversation that the request continues. Items at or after the given sequence number are ignored.
    pub(super) conversation: Option<(ScopeId, u64)>,
}

impl PromptRequest {
    /// Reads a request. The body has the same fields as a request for a response, but the input may be omitted if the
    /// request names a conversation.
    pub(super) async fn read(
        request: &OpenAiRequest,
        body: ObjectBody,
    ) -> Result<Self, OpenAiError> {
        let responses = request.responses()?;
        let context = Context::read(&body)?;
        let body = references::resolve(request, &context, body).await?;
        let is_new = matches!(context, Context::New | Context::Nothing);
        let has_input = body.given("input").is_some_and(|input| input != "[]");
        let filled = match has_input || is_new {
            true => body,
            false => body.with(&[("input", INPUT_PLACEHOLDER)]),
        };
        let id = ResponseId::in_bucket(0, rand::random());
        let created_ms = Clock::system().now_ms();
        let is_read_only = matches!(context, Context::ReadOnly(_));
        let conversation = (!is_new && !is_read_only).then_some("");
        let mut parsed = read_request(&filled, &id, created_ms, responses.limits(), conversation)?;
        if !has_input {
            parsed.input.clear();
        }
        let catalog = responses.catalog();
        if !catalog.has(&parsed.model) {
            return Err(ResponseError::NoModel.into());
        }
        let input = parsed.input.iter().map(|item| item.value.as_str());
        if is_new && let Some(index) = output_without_call(empty(), input) {
            return Err(ResponseError::NoCall { index }.into());
        }
        check_catalog(catalog, &parsed)?;
        Ok(Self {
            conversation: conversation_end(request, &context).await?,
            id,
            request: parsed,
        })
    }
}

/// Returns the conversation of `context`, and the sequence number of the first item to ignore.
async fn conversation_end(
    request: &OpenAiRequest,
    context: &Context,
) -> Result<Option<(ScopeId, u64)>, OpenAiError> {
    match context {
        Context::New | Context::Nothing => Ok(None),
        Context::Thread(id) => Ok(Some((ScopeId::Thread(*id), u64::MAX))),
        Context::Conversation(name) => {
            let id = thread_of(name).ok_or(OpenAiError::NoSuchConversation)?;
            find(request, &id).await?;
            Ok(Some((ScopeId::Thread(id), u64::MAX)))
        }
        Context::Previous(previous) | Context::ReadOnly(previous) => {
            let state = previous_response(request, previous).await?;
            if state.scope.thread().is_none() {
                return Err(ResponseError::NoResponse.into());
            }
            let Some(end) = end_of(request, &state).await? else {
                let expected = "a response whose items are in its conversation";
                let name = "previous_response_id";
                return Err(Fault::unsupported("unsupported_value", name, expected).into());
            };
            Ok(Some((state.scope, end.seq.saturating_add(1))))
        }
    }
}
