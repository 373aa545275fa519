//! Responses over a WebSocket. Each message requests a response, and the events of the response are sent back as
//! messages.
//!
//! The format is that of [OpenAI's WebSocket mode](https://developers.openai.com/api/docs/guides/websocket-mode).

mod last_response;
mod receiver;
mod warm_up;

use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpResponse, rt, web};
use actix_ws::{CloseCode, CloseReason, Session};
use bytes::Bytes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body::flag;
use super::wire_event::WireEvent;
use super::{Prepared, prepare};
use crate::openai::OpenAiError;
use crate::openai::body::ObjectBody;
use crate::openai::fault::Fault;
use crate::openai::request::{OpenAiRequest, SocketRequest};
use last_response::LastResponse;
use receiver::{Gone, MessageReceiver};
use threadkeep_responses::StreamItem;
use threadkeep_service::rates::RateSubject;
use warm_up::{warm_up, warm_up_body};

/// Maximum size of a message in bytes. Request bodies have the same limit.
const MESSAGE_MAX_BYTES: usize = 8 * 1_048_576;
/// Time limit for sending a message to a client that has stopped reading.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// `GET /responses` as a WebSocket
pub(in crate::openai) async fn open_socket(
    SocketRequest(request): SocketRequest,
    payload: web::Payload,
) -> Result<HttpResponse, OpenAiError> {
    let stop = request.responses()?.closing();
    let (response, session, messages) = request.handshake(payload)?;
    let messages = messages
        .max_frame_size(MESSAGE_MAX_BYTES)
        .aggregate_continuations()
        .max_continuation_size(MESSAGE_MAX_BYTES);
    let socket = Socket {
        request,
        receiver: MessageReceiver::new(messages, session.clone()),
        sender: MessageSender(session),
        last_response: None,
    };
    rt::spawn(socket.run(stop));
    Ok(response)
}

/// A socket, whose messages are answered in order.
struct Socket {
    request: OpenAiRequest,
    receiver: MessageReceiver,
    sender: MessageSender,
    /// The last response, if it is stored only in this socket.
    last_response: Option<LastResponse>,
}

struct MessageSender(Session);

impl MessageSender {
    async fn send(&mut self, text: String) -> Result<(), Gone> {
        match timeout(SEND_TIMEOUT, self.0.text(text)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }
}

impl Socket {
    /// Runs until the client or the server closes the WebSocket. Does not interrupt a response that is in progress.
    async fn run(mut self, stop: CancellationToken) {
        let code = loop {
            let text = tokio::select! {
                text = self.receiver.next() => text,
                () = stop.cancelled() => break CloseCode::Away,
            };
            let Ok(text) = text else {
                break CloseCode::Normal;
            };
            let answering = answer(
                &self.request,
                &mut self.sender,
                &mut self.last_response,
                text,
            );
            if !matches!(self.receiver.receive_during(answering).await, Ok(Ok(()))) {
                break CloseCode::Normal;
            }
        };
        let reason = CloseReason {
            code,
            description: None,
        };
        let _ = timeout(SEND_TIMEOUT, self.sender.0.close(Some(reason))).await;
    }
}

/// Answers a message with the events of its response, or with an error.
async fn answer(
    request: &OpenAiRequest,
    sender: &mut MessageSender,
    last_response: &mut Option<LastResponse>,
    text: Bytes,
) -> Result<(), Gone> {
    let earlier = last_response.take();
    let handled = handle(request, sender, earlier, text);
    match RateSubject::back_end().around(handled).await? {
        Ok(new) => *last_response = new,
        Err(error) => sender.send(error.event()).await?,
    }
    Ok(())
}

/// Sends the events of the requested response. Returns the response from which the next message can continue.
async fn handle(
    request: &OpenAiRequest,
    sender: &mut MessageSender,
    earlier: Option<LastResponse>,
    text: Bytes,
) -> Result<Result<Option<LastResponse>, OpenAiError>, Gone> {
    let message = match ResponseMessage::read(earlier, &text) {
        Ok(message) => message,
        Err(error) => return Ok(Err(error)),
    };
    match message.is_warm_up {
        true => warm_up(request, sender, message).await,
        false => respond(request, sender, message).await,
    }
}

/// A message that requests a response.
struct ResponseMessage {
    body: ObjectBody,
    /// The stored response that the new response continues, as JSON, or `null`.
    base: String,
    /// The unstored response that the new response continues.
    earlier: Option<LastResponse>,
    is_warm_up: bool,
}

impl ResponseMessage {
    fn read(earlier: Option<LastResponse>, text: &[u8]) -> Result<Self, OpenAiError> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let body = ObjectBody::read(text).map_err(OpenAiError::of_response_request)?;
        if body.given("type") != Some(r#""response.create""#) {
            return Err(Fault::wrong_value("type", "'response.create'").into());
        }
        let is_warm_up = flag(&body, "generate")? == Some(false);
        let body = match is_warm_up {
            true => warm_up_body(&body)?,
            false => body.with(&[("stream", "true"), ("background", "false")]),
        };
        let previous = body.given("previous_response_id");
        let earlier = earlier.filter(|earlier| previous == Some(&*earlier.id_json()));
        let body = match &earlier {
            Some(earlier) => ObjectBody::read(&earlier.continued(&body))?,
            None => body,
        };
        let base = body.given("previous_response_id").unwrap_or("null");
        Ok(Self {
            base: base.to_owned(),
            body,
            earlier,
            is_warm_up,
        })
    }
}

async fn respond(
    request: &OpenAiRequest,
    sender: &mut MessageSender,
    message: ResponseMessage,
) -> Result<Result<Option<LastResponse>, OpenAiError>, Gone> {
    let begun = async move {
        let Prepared { mut new, .. } = prepare(request, message.body).await?;
        if let Some(earlier) = &message.earlier {
            earlier.set_previous_id(Arc::make_mut(&mut new.request));
        }
        let parsed = Arc::clone(&new.request);
        let events = request.responses()?.stream(new).await?;
        Ok::<_, OpenAiError>((parsed, message.base, events))
    };
    let (parsed, base, mut events) = match begun.await {
        Ok(begun) => begun,
        Err(error) => return Ok(Err(error)),
    };
    let mut last_response = None;
    loop {
        match events.next().await {
            Ok(Some((number, item))) => {
                let event = WireEvent::of(number, &item, events.id(), events.request());
                sender.send(event.data).await?;
                if let StreamItem::Ended(ended) = &item {
                    last_response = LastResponse::of(&parsed, &base, ended);
                }
            }
            Ok(None) => return Ok(Ok(last_response)),
            Err(error) => return Ok(Err(error.into())),
        }
    }
}
