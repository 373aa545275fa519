//! Answers warm-ups: messages with `generate: false`. The response to such a message has no output, and the next
//! message can continue from the items of that response.

use std::sync::Arc;

use uuid::Uuid;

use super::kept::Kept;
use super::{Gone, MessageSender, ResponseMessage};
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::fault::Fault;
use crate::openai::request::OpenAiRequest;
use crate::openai::responses::asked::Asked;
use crate::openai::responses::wire_event::WireEvent;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Outcome, Status, Usage};
use threadkeep_responses::{EndedResponse, StreamItem};
use threadkeep_store::Clock;

/// Returns the body for a warm-up with storing disabled, because only the socket keeps the response.
pub(super) fn warm_up_body(body: &ObjectBody) -> Result<ObjectBody, OpenAiError> {
    if body.given("conversation").is_some() {
        let wanted = "true, as the request names a conversation";
        return Err(Fault::wrong_value("generate", wanted).into());
    }
    Ok(body.with(&[("store", "false"), ("background", "false")]))
}

/// Answers a warm-up. Returns the response from which the next message can continue.
pub(super) async fn warm_up(
    request: &OpenAiRequest,
    mouth: &mut MessageSender,
    asking: ResponseMessage,
) -> Result<Result<Option<Kept>, OpenAiError>, Gone> {
    let base = asking.base;
    let ended = match ended(request, asking.body, asking.earlier).await {
        Ok(ended) => ended,
        Err(error) => return Ok(Err(error)),
    };
    let kept = Kept::of(&ended.request, &base, &ended);
    let (id, request) = (ended.id, Arc::clone(&ended.request));
    let items = [
        StreamItem::Created,
        StreamItem::Running,
        StreamItem::Ended(ended),
    ];
    for (number, item) in (0..).zip(items) {
        let event = WireEvent::of(number, &item, &id, &request);
        mouth.say(event.data).await?;
    }
    Ok(Ok(kept))
}

/// Checks a warm-up like any other request, but calls no model and stores nothing.
async fn ended(
    request: &OpenAiRequest,
    body: ObjectBody,
    earlier: Option<Kept>,
) -> Result<EndedResponse, OpenAiError> {
    let asked = Asked::read(request, body).await?;
    let mut request = asked.request;
    if let Some(earlier) = earlier {
        earlier.name_in(&mut request);
    }
    let nowhere = ScopeId::State(Uuid::nil());
    Ok(EndedResponse {
        id: asked.id,
        request: Arc::new(request),
        scope: nowhere,
        outcome: Arc::new(Outcome {
            status: Status::Completed,
            output: Vec::new(),
            usage: Usage::default(),
            ended_ms: Clock::system().now_ms(),
        }),
        is_replay: false,
    })
}
