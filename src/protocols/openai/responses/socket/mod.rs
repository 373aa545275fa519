//! Responses over a WebSocket: each message asks for one, and the events of its stream come back as messages.
//!
//! The shapes are those of [OpenAI's WebSocket mode](https://developers.openai.com/api/docs/guides/websocket-mode).

mod ears;
mod kept;

use std::sync::Arc;
use std::time::Duration;

use actix_web::{HttpResponse, rt, web};
use actix_ws::{CloseCode, CloseReason, Session};
use bytes::Bytes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::wire_event::WireEvent;
use super::{Prepared, prepare};
use crate::protocols::openai::OpenAiError;
use crate::protocols::openai::body::ObjectBody;
use crate::protocols::openai::edit::{Edit, edited};
use crate::protocols::openai::fault::Fault;
use crate::protocols::openai::request::SocketRequest;
use crate::service::rates::RateSubject;
use crate::service::responses::StreamItem;
use ears::{Ears, Gone};
use kept::Kept;

/// Bytes of a message at most: those of a body.
const MESSAGE_MAX_BYTES: usize = 8 * 1_048_576;
/// How long a client may take to make room for the next message.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// `GET /responses` as a WebSocket
pub(in crate::protocols::openai) async fn open_socket(
    request: SocketRequest,
    payload: web::Payload,
) -> Result<HttpResponse, OpenAiError> {
    let stop = request.turns()?.closing();
    let (response, session, messages) = request.handshake(payload)?;
    let messages = messages
        .max_frame_size(MESSAGE_MAX_BYTES)
        .aggregate_continuations()
        .max_continuation_size(MESSAGE_MAX_BYTES);
    let socket = Socket {
        request,
        ears: Ears::new(messages, session.clone()),
        mouth: Mouth(session),
        kept: None,
    };
    rt::spawn(socket.run(stop));
    Ok(response)
}

/// One socket, whose messages are answered one after the other.
struct Socket {
    request: SocketRequest,
    ears: Ears,
    mouth: Mouth,
    /// The last response, if nothing but this socket keeps it.
    kept: Option<Kept>,
}

struct Mouth(Session);

impl Mouth {
    async fn say(&mut self, text: String) -> Result<(), Gone> {
        match timeout(SEND_TIMEOUT, self.0.text(text)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }
}

impl Socket {
    /// Runs until one side closes it. A response that runs then goes on without it.
    async fn run(mut self, stop: CancellationToken) {
        let code = loop {
            let text = tokio::select! {
                text = self.ears.next() => text,
                () = stop.cancelled() => break CloseCode::Away,
            };
            let Ok(text) = text else {
                break CloseCode::Normal;
            };
            let answering = answer(&self.request, &mut self.mouth, &mut self.kept, text);
            if !matches!(self.ears.beside(answering).await, Ok(Ok(()))) {
                break CloseCode::Normal;
            }
        };
        let reason = CloseReason {
            code,
            description: None,
        };
        let _ = timeout(SEND_TIMEOUT, self.mouth.0.close(Some(reason))).await;
    }
}

/// Answers a message by the events of its response, or by its error.
async fn answer(
    request: &SocketRequest,
    mouth: &mut Mouth,
    kept: &mut Option<Kept>,
    text: Bytes,
) -> Result<(), Gone> {
    let earlier = kept.take();
    let told = tell(request, mouth, earlier, text);
    match RateSubject::back_end().around(told).await? {
        Ok(new) => *kept = new,
        Err(error) => mouth.say(error.event()).await?,
    }
    Ok(())
}

/// Tells the events of the response that a message asks for. Returns the response to go on from.
async fn tell(
    request: &SocketRequest,
    mouth: &mut Mouth,
    earlier: Option<Kept>,
    text: Bytes,
) -> Result<Result<Option<Kept>, OpenAiError>, Gone> {
    let begun = async {
        let body = body_of(&text)?;
        let turns = request.turns()?.clone();
        let previous = body.given("previous_response_id");
        let earlier = earlier.filter(|earlier| previous == Some(&*earlier.name()));
        let body = match &earlier {
            Some(earlier) => ObjectBody::read(&earlier.continued(&body))?,
            None => body,
        };
        let base = body.given("previous_response_id").unwrap_or("null");
        let message = request.message(body.as_str().to_owned().into());
        let Prepared { mut new, .. } = prepare(message).await?;
        if let Some(earlier) = earlier {
            earlier.name_in(&mut new);
        }
        let asked = Arc::clone(&new.request);
        let events = turns.stream(new).await?;
        Ok::<_, OpenAiError>((asked, base.to_owned(), events))
    };
    let (asked, base, mut events) = match begun.await {
        Ok(begun) => begun,
        Err(error) => return Ok(Err(error)),
    };
    let mut kept = None;
    loop {
        match events.next().await {
            Ok(Some((number, item))) => {
                let event = WireEvent::of(number, &item, events.id(), events.request());
                mouth.say(event.data).await?;
                if let StreamItem::Ended(ended) = &item {
                    kept = Kept::of(&asked, &base, ended);
                }
            }
            Ok(None) => return Ok(Ok(kept)),
            Err(error) => return Ok(Err(error.into())),
        }
    }
}

/// The body of the request that a message stands for. It is a stream in any case.
fn body_of(text: &[u8]) -> Result<ObjectBody, OpenAiError> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let body = ObjectBody::read(text).map_err(OpenAiError::of_turn)?;
    if body.given("type") != Some(r#""response.create""#) {
        return Err(Fault::wrong_value("type", "'response.create'").into());
    }
    if body.given("generate") == Some("false") {
        let wanted = "true, as this server prepares nothing";
        return Err(Fault::unsupported("unsupported_value", "generate", wanted).into());
    }
    let edits = [("stream", "true"), ("background", "false")];
    let edits = edits.map(|(name, json)| Edit { name, json });
    ObjectBody::read(&edited(body.as_str(), &edits))
}
