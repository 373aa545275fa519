//! A request of an admitted caller.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpMessage, HttpRequest, dev, web};

use super::envelope::RequestContext;
use super::ids::thread_of;
use super::{OpenAi, OpenAiError};
use crate::domain::ThreadId;
use crate::domain::scope::ItemId;
use crate::http::{About, Repeatable, idempotency, path_part, text_of};
use crate::service::WriteOptions;
use crate::web::ApiError;

/// The parts of `/openai/v1/conversations/{conversation}/items/{item}` that name something.
const CONVERSATION_PLACE: usize = 4;
const ITEM_PLACE: usize = 6;

/// A request.
#[derive(Debug)]
pub(super) struct OpenAiRequest {
    pub(super) protocol: web::Data<OpenAi>,
    request: HttpRequest,
    key: Arc<str>,
    body: Bytes,
}

impl OpenAiRequest {
    fn of(request: &HttpRequest) -> Result<Self, OpenAiError> {
        let protocol = request.app_data::<web::Data<OpenAi>>();
        let extensions = request.extensions();
        let context = extensions.get::<RequestContext>();
        // the envelope has admitted the caller
        let (Some(protocol), Some(context)) = (protocol, context) else {
            return Err(ApiError::NotFound.into());
        };
        Ok(Self {
            protocol: protocol.clone(),
            request: request.clone(),
            key: Arc::clone(&context.key),
            body: context.body.bytes()?.clone(),
        })
    }

    /// The conversation in the path.
    ///
    /// # Errors
    /// [`OpenAiError::NoSuchConversation`].
    pub(super) fn conversation(&self) -> Result<ThreadId, OpenAiError> {
        let name = path_part(&self.request, CONVERSATION_PLACE);
        let id = name.and_then(|name| thread_of(&name));
        let id = id.ok_or(OpenAiError::NoSuchConversation)?;
        self.request.extensions_mut().insert(About(id));
        Ok(id)
    }

    /// The item in the path, unless it can be no item's id.
    pub(super) fn item(&self) -> Option<ItemId> {
        path_part(&self.request, ITEM_PLACE)?.parse().ok()
    }

    pub(super) fn query(&self) -> &str {
        self.request.query_string()
    }

    /// The text of the body.
    ///
    /// # Errors
    /// [`ApiError::InvalidJson`].
    pub(super) fn text(&self) -> Result<&str, OpenAiError> {
        Ok(text_of(&self.body)?)
    }

    /// The conditions of a write.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`].
    pub(super) fn options(&self) -> Result<WriteOptions, OpenAiError> {
        let repeatable = Repeatable::with_body(&self.request, &self.body)?;
        Ok(repeatable.options(None))
    }

    /// The id of a new conversation, the same one for a repeat with the same idempotency key.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`].
    pub(super) fn new_conversation(&self) -> Result<ThreadId, OpenAiError> {
        let id = match idempotency(&self.request, &self.body)? {
            Some((key, _)) => {
                let ring = self.protocol.api.identity.ring();
                let parts = [self.key.as_bytes(), key.as_bytes()];
                ring.derive("threadkeep conversation of openai", &parts)
            }
            None => ThreadId::random(),
        };
        self.request.extensions_mut().insert(About(id));
        Ok(id)
    }
}

impl FromRequest for OpenAiRequest {
    type Error = OpenAiError;
    type Future = Ready<Result<Self, OpenAiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
