//! Responses of models, and the list of models.

mod allowed;
mod body;
mod compact;
mod delivery;
mod echo;
mod include;
mod input;
mod input_tokens;
mod object;
mod parameters;
mod prompt_request;
mod references;
mod socket;
mod stream;
mod stream_query;
mod target;
mod tools;
mod wire_event;

use std::iter::empty;
use std::sync::Arc;

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::OpenAiError;
use super::body::ObjectBody;
use super::fault::Fault;
use super::ids::conversation_of;
use super::list_query::ListQuery;
use super::objects::answer;
use super::request::OpenAiRequest;
use body::{Context, read_request};
pub(super) use compact::compact_response;
use delivery::Delivery;
pub(super) use input_tokens::count_input_tokens;
pub(super) use socket::open_socket;
use stream_query::StreamQuery;
use target::TargetFinder;
use threadkeep_domain::{
    Fingerprint, ResponseId, Slice, Status, ThreadId, members, output_without_call,
};
use threadkeep_responses::{
    Catalog, MediaAt, MessageWindow, MissingThread, NewResponse, Protocol, ResponseError,
    ResponseRequest, ResponseService,
};
use threadkeep_service::{ServiceError, ThreadService};
use threadkeep_store::Clock;

/// `POST /responses`
pub(super) async fn create_response(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let (responses, connection) = (request.responses()?.clone(), request.connection());
    let body = ObjectBody::read(request.text()?).map_err(OpenAiError::of_response_request)?;
    let Prepared {
        new,
        is_detected_without_key,
    } = prepare(&request, body).await?;
    drop(request);
    let id = new.id;
    let answer = run(&responses, new).await?;
    // without an idempotency key, the conversation identifies a repeat
    Ok(match is_detected_without_key {
        true => Delivery {
            responses,
            id,
            connection,
        }
        .of(answer),
        false => answer,
    })
}

struct Prepared {
    new: NewResponse,
    /// True if a repeat is detected without an idempotency key.
    is_detected_without_key: bool,
}

/// Parses a request for a response, and determines the thread and id of the response.
async fn prepare(request: &OpenAiRequest, body: ObjectBody) -> Result<Prepared, OpenAiError> {
    let responses = request.responses()?;
    let digest = request.repeat_digest("threadkeep response")?;
    let context = Context::read(&body)?;
    let fingerprint = fingerprint(request.key(), &body);
    let body = references::resolve(request, &context, body).await?;
    let created_ms = Clock::system().now_ms();
    let has_no_history = matches!(context, Context::New | Context::Nothing);
    let read = |id: &ResponseId, conversation: Option<&str>| {
        let parsed = read_request(&body, id, created_ms, responses.limits(), conversation)?;
        let catalog = responses.catalog();
        if !catalog.has(&parsed.model) {
            return Err(OpenAiError::from(ResponseError::NoModel));
        }
        if has_no_history && parsed.input.is_empty() {
            return Err(input::nothing_to_answer(body.given("input")).into());
        }
        let input = parsed.input.iter().map(|item| item.value.as_str());
        if has_no_history && let Some(index) = output_without_call(empty(), input) {
            return Err(ResponseError::NoCall { index }.into());
        }
        check_catalog(catalog, &parsed)?;
        if let Some(name) = catalog.lacks(&parsed.model, &parsed.parameters) {
            let message =
                format!("Unsupported '{name}': the server of this model does not have it.");
            return Err(Fault::new("unsupported_parameter", name, message).into());
        }
        Ok(parsed)
    };
    let finder = TargetFinder {
        request,
        fingerprint,
        digest,
        check: || read(&ResponseId::in_bucket(0, [0; 16]), Some("")).map(drop),
    };
    let mut target = finder.find(context).await?;
    let thread = target.scope.thread().copied();
    let entropy = || digest.unwrap_or_else(rand::random);
    let id = target
        .repeated
        .unwrap_or_else(|| responses.response_id(&target.scope, entropy()));
    let mut parsed = read(&id, thread.as_ref().map(conversation_of).as_deref())?;
    parsed.is_repeatable = digest.is_some();
    parsed.after = target.after;
    parsed.continued = target.continued;
    if parsed.input.is_empty() {
        // a new conversation would contain nothing to answer
        target.missing = MissingThread::Refuse;
    }
    if let Some(thread) = thread {
        request.record_thread(thread);
        let threads = &request.protocol.api.service;
        threads.admit(&thread).await?;
        if let Some(window) = &parsed.messages {
            check_window(threads, &thread, window).await?;
        }
    }
    let new = NewResponse {
        id,
        scope: target.scope,
        missing: target.missing,
        lent: target.lent,
        wait: request.wait(),
        fingerprint,
        request: Arc::new(parsed),
    };
    let is_repeat_detectable = target.is_repeat_detectable;
    if is_repeat_detectable {
        request.record_detection();
    }
    Ok(Prepared {
        new,
        is_detected_without_key: digest.is_none() && is_repeat_detectable,
    })
}

/// Runs a response. The answer is either a stream or a single object.
async fn run(responses: &ResponseService, new: NewResponse) -> Result<HttpResponse, OpenAiError> {
    if new.request.is_streamed {
        return Ok(stream::respond(responses.stream(new).await?));
    }
    if new.request.is_background {
        let begun = responses.begin(new).await?;
        if let Some(ended) = begun.ended().filter(|_| begun.is_replay()) {
            return Ok(answer(object::of_ended(&ended), true));
        }
        let queued = object::of_running(begun.id(), begun.request(), true);
        return Ok(answer(queued, begun.is_replay()));
    }
    let ended = responses.run(new).await?;
    match &ended.outcome.status {
        Status::Failed(failure) => Err(OpenAiError::Failed {
            failure: failure.clone(),
            is_replay: ended.is_replay,
        }),
        _ => Ok(answer(object::of_ended(&ended), ended.is_replay)),
    }
}

/// Returns a digest of the request without its `stream` member.
fn fingerprint(key: &str, body: &ObjectBody) -> Fingerprint {
    let members = members(body.as_str()).filter(|(name, _)| *name != r#""stream""#);
    let parts = members.flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let parts: Vec<_> = std::iter::once(key.as_bytes()).chain(parts).collect();
    Fingerprint::of(&parts)
}

/// Checks that the model's upstream supports the request's content.
fn check_catalog(catalog: &Catalog, parsed: &ResponseRequest) -> Result<(), Fault> {
    if let Some(media) = catalog.refused_media(&parsed.model, &parsed.input) {
        return Err(refused_media(media));
    }
    if let Some(index) = catalog.refused_compaction(&parsed.model, &parsed.input) {
        return Err(refused_compaction(index));
    }
    match catalog.refused_custom_tool(&parsed.model, &parsed.functions) {
        Some(tool) => Err(refused_custom_tool(&tool.name)),
        None => Ok(()),
    }
}

fn refused_custom_tool(name: &str) -> Fault {
    let message = format!(
        "Unsupported 'tools': the server of this model has no custom tools such as '{name}'. Use one of type 'function' with \
         one parameter that is a string."
    );
    Fault::new("unsupported_tool", "tools", message)
}

fn refused_media(MediaAt { item, member, part }: MediaAt) -> Fault {
    let at = format!("input[{item}].{member}[{part}]");
    let expected = "an image or a file in a place and a form that the server of this model takes";
    Fault::unsupported("unsupported_value", at, expected)
}

fn refused_compaction(index: usize) -> Fault {
    let at = format!("input[{index}].encrypted_content");
    let expected = "a compaction of this server, as the server of this model reads no others";
    Fault::unsupported("unsupported_value", at, expected)
}

/// Checks that the state key to which the response appends its messages is missing or contains an array.
async fn check_window(
    threads: &ThreadService,
    thread: &ThreadId,
    window: &MessageWindow,
) -> Result<(), OpenAiError> {
    let name = "threadkeep.messages.key";
    let expected = "a key whose value is an array";
    let wrong = || Fault::wrong_value(name, expected);
    let key = window.key().ok_or_else(wrong)?;
    match threads.get_value(thread, &key, Some(Slice::Tail(0))).await {
        Err(ServiceError::NotAnArray { .. }) => Err(wrong().into()),
        Ok(_) | Err(ServiceError::KeyNotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn response_id(request: &OpenAiRequest) -> Result<ResponseId, OpenAiError> {
    let name = request.id_in_path().ok_or(ResponseError::NoResponse)?;
    Ok(name.parse().map_err(|_| ResponseError::NoResponse)?)
}

/// `GET /responses/{response}`
pub(super) async fn get_response(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = response_id(&request)?;
    let responses = request.responses()?;
    let query = StreamQuery::read(request.query(), request.last_event_id())?;
    if !query.is_streamed {
        let state = responses.get(Protocol::OpenAi, &id).await?;
        return Ok(answer(object::of_state(&id, &state), false));
    }
    let events = responses.listen(Protocol::OpenAi, &id, query.after).await?;
    Ok(stream::respond(events))
}

/// `POST /responses/{response}/cancel`
pub(super) async fn cancel_response(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = response_id(&request)?;
    let ended = request.responses()?.cancel(Protocol::OpenAi, &id).await?;
    Ok(answer(object::of_ended(&ended), false))
}

/// `DELETE /responses/{response}`
pub(super) async fn delete_response(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = response_id(&request)?;
    request.responses()?.delete(Protocol::OpenAi, &id).await?;
    let deleted = format!(r#"{{"id":"{id}","object":"response","deleted":true}}"#);
    Ok(answer(deleted, false))
}

/// `GET /responses/{response}/input_items`
pub(super) async fn list_input_items(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = response_id(&request)?;
    let query = ListQuery::read(request.query())?;
    let state = request.responses()?.get(Protocol::OpenAi, &id).await?;
    let mut items: Vec<_> = state.request.input.iter().collect();
    if !query.is_ascending {
        items.reverse();
    }
    let start = match &query.after {
        None => 0,
        Some(after) => {
            let index = items.iter().position(|item| item.id == *after);
            index.ok_or(OpenAiError::UnknownCursor)? + 1
        }
    };
    Ok(answer(object::page(&items[start..], query.limit), false))
}

/// `GET /models`
pub(super) async fn list_models(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let models: Vec<_> = request.responses()?.catalog().names().map(model).collect();
    let list = json!({"object": "list", "data": models});
    Ok(answer(list.to_string(), false))
}

/// `GET /models/{model}`
pub(super) async fn get_model(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let name = request.id_in_path().unwrap_or_default();
    let mut names = request.responses()?.catalog().names();
    let found = names.find(|known| *known == name);
    Ok(answer(
        model(found.ok_or(ResponseError::NoModel)?).to_string(),
        false,
    ))
}

fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "threadkeep"})
}
