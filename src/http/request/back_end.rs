//! The caller of a path for back ends.

use std::future::{Ready, ready};

use actix_web::http::Method;
use actix_web::{FromRequest, HttpRequest, Route, dev, web};

use super::context::key_name_of;
use crate::http::Api;
use crate::web::ApiError;

/// A caller with an API key. Others are rejected before anything else is checked.
#[derive(Debug)]
pub(crate) struct BackEnd {
    pub(crate) api: web::Data<Api>,
}

impl BackEnd {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let api = request
            .app_data::<web::Data<Api>>()
            .ok_or(ApiError::NotFound)?;
        key_name_of(request, api).ok_or(ApiError::ApiKeyRequired)?;
        Ok(Self { api: api.clone() })
    }
}

impl FromRequest for BackEnd {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

/// Rejects a method that a path for back ends does not support.
pub(crate) fn not_allowed_for_back_end(allow: &'static str) -> Route {
    web::to(move |_: BackEnd, method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}
