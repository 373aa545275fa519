use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest, web};

use super::context::key_of;
use super::rights::needed_right;
use crate::Api;
use crate::answer::{ApiResult, accepts_json};
use crate::request::extract::extract;
use threadkeep_domain::Owner;
use threadkeep_identity::{ApiKey, Behalf, Identity, IdentityError, bearer};
use threadkeep_web::ApiError;

/// A caller whose API key permits the call. The extractor rejects all other callers first, and then requires that
/// `Accept` allows JSON.
#[derive(Debug)]
pub(crate) struct BackEnd {
    pub(crate) api: web::Data<Api>,
    pub(crate) key: ApiKey,
}

/// Like [`BackEnd`], but ignores `Accept`, for responses that are not always JSON.
#[derive(Debug)]
pub(crate) struct AnyAcceptBackEnd(pub(crate) BackEnd);

/// Name of the API key. Stored in the extensions of requests that the audit log records.
#[derive(Debug)]
pub struct Audited(pub Arc<str>);

/// Returns the API key of a request if the key permits the call.
pub fn key_for(request: &HttpRequest, api: &Api) -> Result<ApiKey, ApiError> {
    let Some(key) = key_of(request, api) else {
        return Err(no_key(request, &api.identity));
    };
    let Some(right) = needed_right(request) else {
        return Ok(key);
    };
    if right.is_audited() {
        let audited = Audited(Arc::clone(&key.name));
        request.extensions_mut().insert(audited);
    }
    match key.rights.cover(&right) {
        true => Ok(key),
        false => Err(ApiError::RightMissing {
            right: right.to_string(),
        }),
    }
}

pub(crate) fn has_key_for(request: &HttpRequest, api: &Api) -> bool {
    let permits = |key: ApiKey| needed_right(request).is_none_or(|right| key.rights.cover(&right));
    key_of(request, api).is_some_and(permits)
}

/// Returns the error for a request without a known API key.
pub fn no_key(request: &HttpRequest, identity: &Identity) -> ApiError {
    let is_token = || {
        let is_owner = matches!(identity.behalf(request), Ok(Behalf::Caller(Some(_))));
        is_owner || identity.has_provider() && identity.identify(request).is_ok()
    };
    match bearer(request.headers()) {
        Some(_) if !is_token() => ApiError::InvalidApiKey,
        _ => ApiError::ApiKeyRequired,
    }
}

/// Returns the owner that a caller without an API key acts for. `refusal` is the error that [`key_for`] returned.
pub fn own(request: &HttpRequest, api: &Api, refusal: ApiError) -> Result<Owner, ApiError> {
    match (api.identity.behalf(request)?, refusal) {
        (Behalf::Caller(Some(owner)), _) => Ok(owner),
        (Behalf::Caller(None), ApiError::ApiKeyRequired) => {
            Err(IdentityError::OwnerRequired.into())
        }
        (_, refusal) => Err(refusal),
    }
}

impl BackEnd {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let AnyAcceptBackEnd(back_end) = AnyAcceptBackEnd::of(request)?;
        accepts_json(request)?;
        Ok(back_end)
    }
}

impl AnyAcceptBackEnd {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let api = request.app_data::<web::Data<Api>>();
        let api = api.ok_or(ApiError::NotFound)?.clone();
        let key = key_for(request, &api)?;
        Ok(Self(BackEnd { api, key }))
    }
}

extract!(BackEnd, AnyAcceptBackEnd);
