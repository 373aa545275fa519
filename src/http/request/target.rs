//! Which thread a request is about.

use std::borrow::Cow;
use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev, web};

use super::back_end::key_for;
use super::context::RequestContext;
use super::query::OfNew;
use crate::domain::{Policy, ThreadId};
use crate::http::Api;
use crate::http::answer::negotiation::{accepts_events, accepts_json};
use crate::identity::{Caller, Source};
use crate::service::{ScopeService, ThreadService};
use crate::web::ApiError;

/// The thread of `/v1/threads/current/...` or `/v1/threads/{id}/...`, once the request has shown
/// that it may, and takes the answers there are.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) api: web::Data<Api>,
    pub(crate) id: ThreadId,
    pub(crate) source: Source,
}

/// The same for a request that listens to it.
#[derive(Debug)]
pub(crate) struct Listened(pub(crate) Target);

impl Target {
    /// The scopes of threads, of which a new one gets that TTL.
    pub(crate) fn scopes(&self, of_new: &OfNew) -> Cow<'_, ScopeService> {
        match of_new.ttl {
            None => Cow::Borrowed(&self.api.scopes),
            Some(_) => {
                let threads = self.service(of_new).into_owned();
                Cow::Owned(self.api.scopes.with_threads(threads))
            }
        }
    }

    /// The threads, of which a new one gets that TTL.
    pub(crate) fn service(&self, of_new: &OfNew) -> Cow<'_, ThreadService> {
        let service = &self.api.service;
        match of_new.ttl {
            None => Cow::Borrowed(service),
            Some(ttl) => Cow::Owned(service.under(Policy {
                ttl,
                ..*service.policy()
            })),
        }
    }

    fn of(
        request: &HttpRequest,
        accepts: fn(&HttpRequest) -> Result<(), ApiError>,
    ) -> Result<Self, ApiError> {
        let api = request
            .app_data::<web::Data<Api>>()
            .ok_or(ApiError::NotFound)?
            .clone();
        let mut extensions = request.extensions_mut();
        let context = extensions.get_mut::<RequestContext>();
        let known = context.and_then(|context| context.caller.take());
        drop(extensions);
        let caller = match known {
            Some(caller) => caller,
            None => caller(&api, request, request.match_info().get("id"))?,
        };
        let (id, source) = (caller.id, caller.source);
        request.extensions_mut().insert(caller);
        accepts(request)?;
        Ok(Self { api, id, source })
    }
}

/// Identifies the caller of a request for the thread with that plain id, or for its own thread. An api key
/// opens every thread, a signed id only its own. Without either, the answer is the same for every fault, and
/// comes before a look at the id.
pub(super) fn caller(
    api: &Api,
    request: &HttpRequest,
    id: Option<&str>,
) -> Result<Caller, ApiError> {
    let Some(id) = id else {
        return Ok(api.identity.identify(request)?);
    };
    let refusal = match key_for(request, api) {
        Ok(key) => {
            let id = id.parse().map_err(|_| ApiError::InvalidThreadId)?;
            return Ok(Caller::of(id, Source::ApiKey).with_key(key.name));
        }
        Err(refusal) => refusal,
    };
    api.identity
        .proven_caller(request)
        .filter(|caller| caller.id.as_str() == id)
        .ok_or(refusal)
}

impl FromRequest for Target {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request, accepts_json))
    }
}

impl FromRequest for Listened {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Target::of(request, accepts_events).map(Self))
    }
}
