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

/// Minimum length of an idempotency key that counts as random: 128 bits in hex.
const RANDOM_KEY_BYTES: usize = 32;

pub(crate) struct ThreadMaker<'a> {
    request: &'a HttpRequest,
    api: &'a Api,
    kind: Kind,
}

enum Kind {
    BackEnd(Arc<str>),
    Caller(Caller),
    Anonymous,
}

impl<'a> ThreadMaker<'a> {
    /// Identifies the caller. Fails if the API key is unknown, or if an identity provider identifies callers and this
    /// caller has no credentials.
    pub(crate) fn of(request: &'a HttpRequest, api: &'a Api) -> ApiResult<Self> {
        let kind = if key_of(request, api).is_some() {
            Kind::BackEnd(key_for(request, api)?.name)
        } else if let Some(caller) = api.identity.known_caller(request) {
            Kind::Caller(caller)
        } else {
            match no_key(request, &api.identity) {
                ApiError::ApiKeyRequired if !api.identity.has_provider() => Kind::Anonymous,
                refusal => return Err(refusal),
            }
        };
        Ok(Self { request, api, kind })
    }

    pub(crate) fn chosen_id(&self, id: &str) -> ApiResult<ThreadId> {
        match &self.kind {
            Kind::BackEnd(_) => id.parse().map_err(|_| ApiError::InvalidThreadId),
            Kind::Caller(_) | Kind::Anonymous => Err(no_key(self.request, &self.api.identity)),
        }
    }

    /// Returns the id for a new thread. Without an idempotency key, the id is random. With a key, every retry gets the
    /// same id, because the store keeps the key with the thread and must find it there.
    ///
    /// Keys are scoped to the caller. A caller without credentials is identified only by its address. Its key must be
    /// long enough to be random, because two callers with the same address and key would get the same thread.
    pub(crate) fn generated_id(&self, key: Option<&HeaderValue>) -> ApiResult<ThreadId> {
        let Some(key) = key else {
            return Ok(ThreadId::random());
        };
        let (kind, name) = self.scope_of_key(key)?;
        let parts = [kind.as_bytes(), name.as_bytes(), key.as_bytes()];
        let ring = self.api.identity.ring();
        Ok(ring.derive("threadkeep idempotent create", &parts))
    }

    /// Like [`Self::generated_id`], but returns an id in the same storage bucket as `source` if possible.
    pub(crate) fn id_near(
        &self,
        key: Option<&HeaderValue>,
        source: &ThreadId,
    ) -> ApiResult<ThreadId> {
        let Some(key) = key else {
            return Ok(self.api.images.id_near(source, |_| ThreadId::random()));
        };
        let (kind, name) = self.scope_of_key(key)?;
        let ring = self.api.identity.ring();
        Ok(self.api.images.id_near(source, |number| {
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

    /// Returns the kind and name of the caller, to distinguish equal idempotency keys of different callers.
    fn scope_of_key(&self, key: &HeaderValue) -> ApiResult<(&'static str, String)> {
        match &self.kind {
            Kind::BackEnd(name) => Ok(("key", name.to_string())),
            Kind::Caller(caller) => Ok(("thread", caller.id.to_string())),
            Kind::Anonymous if key.len() >= RANDOM_KEY_BYTES => {
                let client = self.api.identity.proxies().client(self.request);
                let name = client.map_or_else(String::new, |client| client.to_string());
                Ok(("stranger", name))
            }
            Kind::Anonymous => Err(no_key(self.request, &self.api.identity)),
        }
    }
}
