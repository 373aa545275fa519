//! Passes a message to the MCP library's transport, and returns the transport's answer.

use actix_web::body::{BoxBody, MessageBody, to_bytes};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse};
use bytes::Bytes;
use rmcp::model::JsonRpcError;

use super::Opened;
use super::fault::{ANSWERS_MAX_BYTES, MessageFault};
use super::message::Message;
use super::methods;
use super::revision::Revision;
use threadkeep_web::ApiError;

const JSON: &str = "application/json";

pub(super) async fn answer<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: &Next<B>,
    opened: &Opened,
    message: Message,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_json = request.content_type().eq_ignore_ascii_case(JSON);
    let id = message.id();
    let undeclared = undeclared(&message, Revision::of(request.headers()));
    request.extensions_mut().insert(Opened {
        arguments: message.arguments,
        ..opened.clone()
    });
    request.set_payload(Payload::from(Bytes::from(message.envelope)));
    let response = next.call(request).await?;
    let response = buffered(with_content_type(response).map_into_boxed_body()).await?;
    Ok(match (response.status(), undeclared) {
        // for a JSON body, the library's 415 means that the body is not a message
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, _) if is_json => {
            let error = MessageFault::NoMessage(id).into_error();
            response.into_response(HttpResponse::BadRequest().json(error))
        }
        // any other status rejects the HTTP request itself, and takes precedence
        (StatusCode::OK | StatusCode::NOT_FOUND, Some(refusal)) => response.into_response(refusal),
        _ => response,
    })
}

/// Answers the messages of a batch in order. Notifications get no answer.
pub(super) async fn answer_batch<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: &Next<B>,
    opened: &Opened,
    messages: Vec<Result<Message, MessageFault>>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut answers = Answers::default();
    for message in messages {
        let message = match message {
            Ok(message) if !answers.is_full() => message,
            Ok(message) => {
                if let id @ Some(_) = message.id() {
                    answers.refuse(MessageFault::NoRoom(id))?;
                }
                continue;
            }
            Err(fault) => {
                answers.refuse(fault)?;
                continue;
            }
        };
        let response = answer(request, next, opened, message).await?;
        let is_notification = response.status() == StatusCode::ACCEPTED;
        if !is_notification && !is_json(&response) {
            // the library rejected the HTTP headers, which all messages share
            return Ok(response);
        }
        let (http_request, response) = response.into_parts();
        if !is_notification {
            let bytes = to_bytes(response.into_body()).await.map_err(aborted)?;
            answers.add(&bytes);
        }
        request = ServiceRequest::from_parts(http_request, Payload::None);
    }
    Ok(request.into_response(answers.into_response()))
}

/// The answers to a batch: a JSON array without its closing bracket.
#[derive(Default)]
struct Answers(Vec<u8>);

impl Answers {
    fn add(&mut self, json: &[u8]) {
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        self.0.extend_from_slice(json);
    }

    fn refuse(&mut self, fault: MessageFault) -> serde_json::Result<()> {
        self.add(&serde_json::to_vec(&fault.into_error())?);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.0.len() > ANSWERS_MAX_BYTES
    }

    fn into_response(mut self) -> HttpResponse {
        if self.0.is_empty() {
            return HttpResponse::Accepted().finish();
        }
        self.0.push(b']');
        HttpResponse::Ok().content_type(JSON).body(self.0)
    }
}

/// Returns the answer to a request for a method that this server does not declare, or `None` for notifications and
/// declared methods.
fn undeclared(message: &Message, revision: Revision<'_>) -> Option<HttpResponse> {
    let id = message.id()?;
    if methods::is_declared(&message.method()?, revision) {
        return None;
    }
    let status = match revision.is_stateless() {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::OK,
    };
    let error = JsonRpcError::new(Some(id), methods::not_found(revision));
    Some(HttpResponse::build(status).json(error))
}

/// Reads the complete body of an answer that is not an event stream, so that the answer's size is known and counts
/// toward the memory limit for answers.
async fn buffered(response: ServiceResponse) -> Result<ServiceResponse, ApiError> {
    let content_type = response.headers().get(CONTENT_TYPE);
    if content_type.is_some_and(|name| name == "text/event-stream") {
        return Ok(response);
    }
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let bytes = to_bytes(body).await.map_err(aborted)?;
    let response = response.set_body(BoxBody::new(bytes));
    Ok(ServiceResponse::new(request, response))
}

fn aborted(_: Box<dyn std::error::Error>) -> ApiError {
    ApiError::Internal {
        what: "the transport broke off an answer",
        source: None,
    }
}

fn is_json(response: &ServiceResponse) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|name| name == JSON)
}

/// Adds a content type to an error from the transport if the error has none.
fn with_content_type<B>(mut response: ServiceResponse<B>) -> ServiceResponse<B> {
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let headers = response.headers_mut();
    let has_type = headers
        .get(CONTENT_TYPE)
        .is_some_and(|name| name != "application/octet-stream");
    if is_error && !has_type {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(CONTENT_TYPE, text);
    }
    response
}
