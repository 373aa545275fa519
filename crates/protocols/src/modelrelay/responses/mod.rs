//! Responses of models whose tools this server runs.

mod body;
mod context;
mod form;
mod input;
mod object;
mod stream;
mod tools;
mod transcript;

use std::sync::Arc;

use actix_web::HttpResponse;

use super::RelayError;
use super::error::wrong_body;
use super::request::RelayRequest;
use crate::prefer::wait;
use body::{ResponseOptions, ResponsesBody};
use context::Context;
use form::Form;
use threadkeep_domain::Status;
use threadkeep_http::{json_text, mark_replay};
use threadkeep_responses::{MissingThread, NewResponse, ResponseError};
use threadkeep_store::Clock;

/// `POST /responses`
pub(super) async fn create_response(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let relay = request.protocol.clone();
    let responses = relay
        .responses
        .clone()
        .ok_or(RelayError::NotFound("path"))?;
    let form = Form::of(request.headers());
    let parsed = request.json::<ResponsesBody>()?.read(responses.limits())?;
    if !responses.catalog().has(&parsed.model) {
        return Err(ResponseError::NoModel.into());
    }
    let making = request.making("response", None)?;
    let context = parsed.context;
    let scope = context.scope(&relay, &making).await?;
    let id = responses.response_id(&scope, making.id.into_bytes());
    let is_repeatable = making.request.is_some();
    if let Err(error) = context.check(&relay).await {
        // a repeated request gets its stored answer even after the session, state handle or run has ended
        if !is_repeatable || !responses.knows(&id).await? {
            return Err(error);
        }
    }
    // a response counts as one write
    if context != Context::Nothing {
        relay.scopes.admit(&scope).await?;
    }
    let options = ResponseOptions {
        id,
        created_ms: Clock::system().now_ms(),
        is_streamed: form.is_streamed(),
        is_repeatable,
    };
    let new = NewResponse {
        id,
        scope,
        missing: MissingThread::Refuse,
        lent: None,
        wait: wait(request.headers()),
        fingerprint: request.fingerprint(),
        request: Arc::new(parsed.into_request(&options)),
    };
    let (model, input) = (&new.request.model, &new.request.input);
    if responses.catalog().refused_media(model, input).is_some() {
        let text = "the server of this model does not take a file in that place and form";
        return Err(wrong_body(text));
    }
    // frees the body, which may be large, while the response runs
    drop(request);
    if form.is_streamed() {
        return stream::respond(responses, new, form).await;
    }
    let ended = responses.run(new).await?;
    if let Status::Failed(failure) = &ended.outcome.status {
        return Err(RelayError::Failed(failure.clone()));
    }
    let mut response = HttpResponse::Ok();
    mark_replay(&mut response, ended.is_replay);
    Ok(json_text(response, object::of_ended(&ended)))
}
