//! The creator of a thread, and the thread's id.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderValue;

use super::back_end::{key_for, no_key};
use super::context::key_of;
use crate::Api;
use crate::answer::ApiResult;
use threadkeep_domain::ThreadId;
use threadkeep_identity::Caller;
use threadkeep_web::ApiError;

/// The shortest idempotency key that counts as random: 128 bits in hex.
const RANDOM_KEY_BYTES: usize = 32;

/// The creator of a thread.
pub(crate) enum ThreadMaker {
    BackEnd(Arc<str>),
    Caller(Caller),
    Stranger,
}

impl ThreadMaker {
    /// If a provider identifies callers, strangers create no threads, and nobody does with an unknown API key.
    pub(crate) fn of(request: &HttpRequest, api: &Api) -> ApiResult<Self> {
        if key_of(request, api).is_some() {
            return Ok(Self::BackEnd(key_for(request, api)?.name));
        }
        if let Some(caller) = api.identity.known_caller(request) {
            return Ok(Self::Caller(caller));
        }
        match no_key(request, &api.identity) {
            ApiError::ApiKeyRequired if !api.identity.has_provider() => Ok(Self::Stranger),
            refusal => Err(refusal),
        }
    }

    /// An id that the client has chosen; only back ends may choose one.
    pub(crate) fn chosen_id(
        &self,
        request: &HttpRequest,
        api: &Api,
        id: &str,
    ) -> ApiResult<ThreadId> {
        match self {
            Self::BackEnd(_) => id.parse().map_err(|_| ApiError::InvalidThreadId),
            Self::Caller(_) | Self::Stranger => Err(no_key(request, &api.identity)),
        }
    }

    /// A random id; with an idempotency key, the same id for a repeat, since the key is remembered with the thread.
    /// The key counts within the caller. Two strangers with the same key must not get the same thread, so a stranger's
    /// key has to be long enough to be random, and counts within its client address.
    pub(crate) fn made_id(
        &self,
        request: &HttpRequest,
        api: &Api,
        key: Option<&HeaderValue>,
    ) -> ApiResult<ThreadId> {
        let Some(key) = key else {
            return Ok(ThreadId::random());
        };
        let (kind, name) = self.named(request, api, key)?;
        let parts = [kind.as_bytes(), name.as_bytes(), key.as_bytes()];
        let ring = api.identity.ring();
        Ok(ring.derive("threadkeep idempotent create", &parts))
    }

    /// The id of a copy of a thread, made in the same way, in the bucket of the thread if possible.
    pub(crate) fn id_near(
        &self,
        request: &HttpRequest,
        api: &Api,
        key: Option<&HeaderValue>,
        source: &ThreadId,
    ) -> ApiResult<ThreadId> {
        let Some(key) = key else {
            return Ok(api.images.id_near(source, |_| ThreadId::random()));
        };
        let (kind, name) = self.named(request, api, key)?;
        let ring = api.identity.ring();
        Ok(api.images.id_near(source, |number| {
            let parts: [&[u8]; 5] = [
                kind.as_bytes(),
                name.as_bytes(),
                key.as_bytes(),
                source.as_bytes(),
                &number.to_be_bytes(),
            ];
            ring.derive("threadkeep idempotent fork", &parts)
        }))
    }

    /// The caller within which an idempotency key counts.
    fn named(
        &self,
        request: &HttpRequest,
        api: &Api,
        key: &HeaderValue,
    ) -> ApiResult<(&'static str, String)> {
        match self {
            Self::BackEnd(name) => Ok(("key", name.to_string())),
            Self::Caller(caller) => Ok(("thread", caller.id.to_string())),
            Self::Stranger if key.len() >= RANDOM_KEY_BYTES => {
                let client = api.identity.proxies().client(request);
                let name = client.map_or_else(String::new, |client| client.to_string());
                Ok(("stranger", name))
            }
            Self::Stranger => Err(no_key(request, &api.identity)),
        }
    }
}
