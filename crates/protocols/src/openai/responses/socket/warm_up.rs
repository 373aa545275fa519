//! Answers warm-ups: messages with `generate: false`. The response to such a message has no output, and the next
//! message can continue from the items of that response.

use std::sync::Arc;

use uuid::Uuid;

use super::last_response::LastResponse;
use super::{Gone, MessageSender, ResponseMessage};
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::fault::Fault;
use crate::openai::request::OpenAiRequest;
use crate::openai::responses::prompt_request::PromptRequest;
use crate::openai::responses::wire_event::WireEvent;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Outcome, Status, Usage};
use threadkeep_responses::{EndedResponse, StreamItem};
use threadkeep_store::Clock;

/// Returns the body of a warm-up with `store` set to false, because the response is kept only in the socket's memory.
pub(super) fn warm_up_body(body: &ObjectBody) -> Result<ObjectBody, OpenAiError> {
    if body.given("conversation").is_some() {
        let expected = "true, as the request names a conversation";
        return Err(Fault::wrong_value("generate", expected).into());
    }
    Ok(body.with(&[("store", "false"), ("background", "false")]))
}

/// Answers a warm-up. Returns the response from which the next message can continue.
pub(super) async fn warm_up(
    request: &OpenAiRequest,
    sender: &mut MessageSender,
    message: ResponseMessage,
) -> Result<Result<Option<LastResponse>, OpenAiError>, Gone> {
    let base = message.base;
    let ended = match ended(request, message.body, message.earlier).await {
        Ok(ended) => ended,
        Err(error) => return Ok(Err(error)),
    };
    let last_response = LastResponse::of(&ended.request, &base, &ended);
    let (id, request) = (ended.id, Arc::clone(&ended.request));
    let items = [
        StreamItem::Created,
        StreamItem::Running,
        StreamItem::Ended(ended),
    ];
    for (number, item) in (0..).zip(items) {
        let event = WireEvent::of(number, &item, &id, &request);
        sender.send(event.data).await?;
    }
    Ok(Ok(last_response))
}

/// Checks a warm-up like any other request, and returns an empty response. Does not call a model or store anything.
async fn ended(
    request: &OpenAiRequest,
    body: ObjectBody,
    earlier: Option<LastResponse>,
) -> Result<EndedResponse, OpenAiError> {
    let prompt = PromptRequest::read(request, body).await?;
    let mut request = prompt.request;
    if let Some(earlier) = earlier {
        earlier.set_previous_id(&mut request);
    }
    let unused_scope = ScopeId::State(Uuid::nil());
    Ok(EndedResponse {
        id: prompt.id,
        request: Arc::new(request),
        scope: unused_scope,
        outcome: Arc::new(Outcome {
            status: Status::Completed,
            output: Vec::new(),
            usage: Usage::default(),
            ended_ms: Clock::system().now_ms(),
        }),
        is_replay: false,
    })
}
