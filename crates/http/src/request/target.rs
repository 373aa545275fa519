use std::borrow::Cow;
use std::time::SystemTime;

use actix_web::http::header::HeaderValue;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, web};
use tokio_util::sync::CancellationToken;

use super::back_end::key_for;
use super::context::{change_context, key_of};
use super::extract::extract;
use super::query::{NewThreadQuery, Reading};
use crate::Api;
use crate::answer::{ApiResult, EVENT_STREAM, JSON, accepts};
use threadkeep_domain::{Access, KeyRing, ThreadId, ThreadPolicy};
use threadkeep_identity::{ApiKey, Behalf, Caller, Right, Source};
use threadkeep_service::{
    CheckpointService, EffectService, ScopeService, ThreadService, TurnService,
};
use threadkeep_web::ApiError;

/// The thread that a request names. The extractor checks that the caller may use the thread, and that `Accept` allows
/// the type of the response.
#[derive(Debug)]
pub(crate) struct Target {
    api: web::Data<Api>,
    behalf: Behalf,
    reserves_keys: bool,
    pub(crate) id: ThreadId,
    pub(crate) source: Source,
}

/// A thread that a caller may read. `access` is used to repeat the access check while an event stream is open, because
/// access can change.
pub(crate) struct Listener {
    pub(crate) api: web::Data<Api>,
    pub(crate) id: ThreadId,
    pub(crate) access: Access,
}

/// Like [`Target`], for a request that accepts an event stream.
#[derive(Debug)]
pub(crate) struct StreamTarget(pub(crate) Target);

impl Target {
    pub(crate) fn compress(&self, text: Bytes) {
        let Api {
            compressor,
            service,
            ..
        } = &**self.api;
        compressor.compress(service, self.id, text);
    }

    pub(crate) fn threads(&self) -> Cow<'_, ThreadService> {
        threads_for(&self.api, &self.behalf, self.reserves_keys)
    }

    pub(crate) fn threads_for_read(&self, reading: &Reading) -> Cow<'_, ThreadService> {
        match reading.is_peek() {
            true => Cow::Owned(self.threads().peeking()),
            false => self.threads(),
        }
    }

    pub(crate) fn new_threads(&self, new_thread: &NewThreadQuery) -> Cow<'_, ThreadService> {
        let threads = self.threads();
        match new_thread.ttl {
            None => threads,
            Some(ttl) => Cow::Owned(threads.under(ThreadPolicy {
                ttl,
                ..*threads.policy()
            })),
        }
    }

    pub(crate) fn scopes(&self, new_thread: &NewThreadQuery) -> Cow<'_, ScopeService> {
        self.scopes_of(self.new_threads(new_thread))
    }

    pub(crate) fn scopes_for_read(&self, reading: &Reading) -> Cow<'_, ScopeService> {
        self.scopes_of(self.threads_for_read(reading))
    }

    fn scopes_of(&self, threads: Cow<'_, ThreadService>) -> Cow<'_, ScopeService> {
        match threads {
            Cow::Borrowed(_) => Cow::Borrowed(&self.api.scopes),
            Cow::Owned(threads) => Cow::Owned(self.api.scopes.with_threads(threads)),
        }
    }

    pub(crate) fn turns(&self, new_thread: &NewThreadQuery) -> TurnService {
        self.api
            .turns
            .with_threads(self.new_threads(new_thread).into_owned())
    }

    pub(crate) fn effects(&self) -> Cow<'_, EffectService> {
        match self.threads() {
            Cow::Borrowed(_) => Cow::Borrowed(&self.api.effects),
            Cow::Owned(threads) => Cow::Owned(self.api.effects.with_threads(threads)),
        }
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        self.api.identity.ring()
    }

    pub(crate) fn checkpoints(&self) -> Cow<'_, CheckpointService> {
        match self.threads() {
            Cow::Borrowed(_) => Cow::Borrowed(&self.api.checkpoints),
            Cow::Owned(threads) => Cow::Owned(self.api.checkpoints.with_threads(threads)),
        }
    }

    pub(crate) fn signed_id(&self, id: &ThreadId) -> HeaderValue {
        self.api.identity.signed_id(id)
    }

    /// Returns the thread's signed id if the caller is a back end that may write to the thread, so that the back end
    /// can pass the id to its client.
    pub(crate) fn signed_for_back_end(&self, request: &HttpRequest) -> Option<HeaderValue> {
        if self.source != Source::ApiKey {
            return None;
        }
        let key = key_of(request, &self.api)?;
        let may_write = key.rights.cover(&Right::Threads);
        may_write.then(|| self.signed_id(&self.id))
    }

    pub(crate) fn back_end(&self, request: &HttpRequest) -> ApiResult<ApiKey> {
        key_for(request, &self.api)
    }

    pub(crate) async fn listener(self) -> ApiResult<Listener> {
        let access = self.threads().access();
        self.api.owners.check(&self.id, access).await?;
        Ok(Listener {
            api: self.api,
            id: self.id,
            access,
        })
    }

    /// Returns the time at which the caller's credentials expire, or `None` for API keys, which do not expire.
    pub(crate) fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        match self.source {
            Source::ApiKey => None,
            _ => self.api.identity.valid_until(request),
        }
    }

    /// Returns a token that is cancelled when this replica begins to shut down.
    pub(crate) fn draining(&self) -> &CancellationToken {
        self.api.events.draining()
    }

    pub(super) fn of(request: &HttpRequest) -> ApiResult<Self> {
        Self::accepting(request, JSON)
    }

    fn accepting(request: &HttpRequest, answer: &'static str) -> ApiResult<Self> {
        let api = request
            .app_data::<web::Data<Api>>()
            .ok_or(ApiError::NotFound)?
            .clone();
        let identified = change_context(request, |context| context.caller.take());
        let caller = match identified.flatten() {
            Some(caller) => caller,
            None => caller(&api, request, request.match_info().get("id"))?,
        };
        let behalf = match caller.source {
            Source::ApiKey => Behalf::Anyone,
            _ => behalf(&api, request)?,
        };
        let (id, source) = (caller.id, caller.source);
        request.extensions_mut().insert(caller);
        accepts(request, answer)?;
        let reserves_keys = source != Source::ApiKey && reserves_keys(&api, request);
        Ok(Self {
            api,
            behalf,
            reserves_keys,
            id,
            source,
        })
    }
}

impl StreamTarget {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        Target::accepting(request, EVENT_STREAM).map(Self)
    }
}

/// Returns the owner that a request acts for. Returns `Anyone` if the request has an API key that permits the call, or
/// if the server does not identify owners.
pub(crate) fn behalf(api: &Api, request: &HttpRequest) -> ApiResult<Behalf> {
    match api.identity.has_owner_provider() && key_for(request, api).is_err() {
        true => Ok(api.identity.behalf(request)?),
        false => Ok(Behalf::Anyone),
    }
}

pub(crate) fn reserves_keys(api: &Api, request: &HttpRequest) -> bool {
    !api.reserved_keys.is_empty() && key_for(request, api).is_err()
}

pub(crate) fn threads_for<'a>(
    api: &'a Api,
    behalf: &Behalf,
    reserves_keys: bool,
) -> Cow<'a, ThreadService> {
    let threads = api.threads_for(behalf);
    match reserves_keys {
        true => Cow::Owned(threads.reserving(api.reserved_keys.clone())),
        false => threads,
    }
}

/// Identifies the caller of a request for the thread `id`, or for the caller's own thread if `id` is `None`.
///
/// An API key gives access to all threads, and a signed id only to its own thread. Without either, the error is the
/// same for every `id`.
pub(super) fn caller(api: &Api, request: &HttpRequest, id: Option<&str>) -> ApiResult<Caller> {
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

extract!(Target, StreamTarget);
