//! Paths that are for back ends alone.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, Route, dev, web};

use super::context::key_name_of;
use crate::http::Api;
use crate::web::ApiError;

/// Someone with an api key; everybody else is refused before anything is looked at.
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

/// Refuses a method that a path for back ends does not take.
pub(crate) fn not_allowed_for_back_end(allow: &'static str) -> Route {
    web::to(move |_: BackEnd| ready(Err::<&str, _>(ApiError::MethodNotAllowed { allow })))
}
