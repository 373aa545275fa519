use std::borrow::Cow;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderName;
use actix_web::web::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, HttpResponse, dev};
use actix_ws::{MessageStream, Session};

use super::envelope::Recognized;
use super::fault::Fault;
use super::ids::thread_of;
use super::{OpenAi, OpenAiError};
use crate::frame::Admitted;
use crate::prefer::wait;
use threadkeep_domain::scope::ItemId;
use threadkeep_domain::{ThreadId, TurnToken};
use threadkeep_http::{About, ConnectionState, Repeatable, idempotency, path_part, text_of, turn};
use threadkeep_responses::ResponseService;
use threadkeep_service::WriteOptions;

/// Indexes of segments in the path `/v1/conversations/{conversation}/items/{item}`.
const ID_INDEX: usize = 3;
const ITEM_INDEX: usize = 5;
/// Start of paths below the base URL `/openai/v1`. Such paths have one more segment than paths below `/v1`.
const BASE: &str = "/openai/";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Header in which OpenAI's clients send the number of earlier attempts.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

pub(super) type OpenAiRequest = Admitted<OpenAi>;

/// A request that opens a WebSocket. Each message on the WebSocket is handled as part of that request.
pub(super) struct SocketRequest(pub(super) OpenAiRequest);

pub(crate) struct Sender {
    /// The name of the API key.
    pub(super) key: Arc<str>,
    /// True if the request is a message on a WebSocket. Headers that identify repeats do not apply to messages.
    pub(super) is_message: bool,
}

impl OpenAiRequest {
    pub(super) fn handshake(
        &self,
        payload: Payload,
    ) -> Result<(HttpResponse, Session, MessageStream), OpenAiError> {
        let expected = "the handshake of a WebSocket of version 13";
        let opened = actix_ws::handle(&self.request, payload);
        Ok(opened.map_err(|_| Fault::wrong_value("sec-websocket-key", expected))?)
    }

    pub(super) fn conversation(&self) -> Result<ThreadId, OpenAiError> {
        let id = self.part(ID_INDEX);
        let id = id.and_then(|name| thread_of(&name));
        let id = id.ok_or(OpenAiError::NoSuchConversation)?;
        self.request.extensions_mut().insert(About(id));
        Ok(id)
    }

    /// Returns the item id in the path, or `None` if the id is invalid.
    pub(super) fn item(&self) -> Option<ItemId> {
        self.part(ITEM_INDEX)?.parse().ok()
    }

    /// Returns the id in `/responses/{response}` or `/models/{model}`, below either base URL.
    pub(super) fn id_in_path(&self) -> Option<String> {
        self.part(ID_INDEX).map(Cow::into_owned)
    }

    /// Returns the path segment at `index` below `/v1`, for either base URL.
    fn part(&self, index: usize) -> Option<Cow<'_, str>> {
        let is_below_base = self.request.match_info().as_str().starts_with(BASE);
        path_part(&self.request, index + usize::from(is_below_base))
    }

    pub(super) fn responses(&self) -> Result<&ResponseService, OpenAiError> {
        let unknown = OpenAiError::UnknownUrl { has_models: false };
        self.protocol.responses.as_ref().ok_or(unknown)
    }

    /// Returns a keyed hash of the caller's name and the idempotency key, or `None` if there is no key. A repeated
    /// request gets the same hash.
    pub(super) fn repeat_digest(&self, purpose: &str) -> Result<Option<[u8; 16]>, OpenAiError> {
        if self.caller.is_message {
            return Ok(None);
        }
        let Some((key, _)) = idempotency(&self.request, self.body.bytes()?)? else {
            return Ok(None);
        };
        let ring = self.protocol.api.identity.ring();
        Ok(Some(ring.digest(
            purpose,
            &[self.caller.key.as_bytes(), key.as_bytes()],
        )))
    }

    pub(super) fn key(&self) -> &str {
        &self.caller.key
    }

    /// Records that repeats of the request can be detected without an idempotency key.
    pub(super) fn record_detection(&self) {
        self.request.extensions_mut().insert(Recognized);
    }

    pub(super) fn connection(&self) -> Option<ConnectionState> {
        self.request.conn_data().cloned()
    }

    /// Returns whether the request is an automatic retry by the client library.
    pub(super) fn is_retry(&self) -> bool {
        let count = self.request.headers().get(RETRY_COUNT);
        let count = count.and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
        count.is_some_and(|count| count > 0) && !self.caller.is_message
    }

    /// Returns the token of the thread's turn (its exclusive lease), if the caller holds the turn.
    pub(super) fn turn(&self) -> Result<Option<TurnToken>, OpenAiError> {
        Ok(turn(&self.request)?)
    }

    /// Returns how long the caller is willing to wait for a turn that another client holds (see [`wait`]).
    pub(super) fn wait(&self) -> Duration {
        wait(self.request.headers())
    }

    /// Records which thread the request is about.
    pub(super) fn record_thread(&self, id: ThreadId) {
        self.request.extensions_mut().insert(About(id));
    }

    /// Returns `Last-Event-ID`: the sequence number of the last stream event that the caller has received.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.request.headers().get(LAST_EVENT_ID)?.to_str().ok()
    }

    pub(super) fn query(&self) -> &str {
        self.request.query_string()
    }

    pub(super) fn text(&self) -> Result<&str, OpenAiError> {
        Ok(text_of(self.body.bytes()?)?)
    }

    pub(super) fn options(&self) -> Result<WriteOptions, OpenAiError> {
        let repeatable = Repeatable::with_body(&self.request, self.body.bytes()?)?;
        Ok(repeatable.options(None))
    }

    /// Generates the id of a conversation. A repeated request with the same idempotency key gets the same id.
    pub(super) fn new_conversation(&self) -> Result<ThreadId, OpenAiError> {
        let id = match idempotency(&self.request, self.body.bytes()?)? {
            Some((key, _)) => {
                let ring = self.protocol.api.identity.ring();
                let parts = [self.caller.key.as_bytes(), key.as_bytes()];
                ring.derive("threadkeep conversation of openai", &parts)
            }
            None => ThreadId::random(),
        };
        self.request.extensions_mut().insert(About(id));
        Ok(id)
    }
}

impl FromRequest for SocketRequest {
    type Error = OpenAiError;
    type Future = Ready<Result<Self, OpenAiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(OpenAiRequest::of(request).map(|mut request| {
            request.caller.is_message = true;
            Self(request)
        }))
    }
}
