//! A body that is JSON text.

use std::future::{Ready, ready};

use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest, dev};

use super::context::body_of;
use crate::answer::negotiation::BodyType;
use threadkeep_domain::JsonError;
use threadkeep_web::ApiError;

/// UTF-8 text of a body whose type is JSON.
#[derive(Debug)]
pub(crate) struct JsonBody(Bytes);

/// UTF-8 text of a body that is a list of operations or a merge patch, as its type says.
#[derive(Debug)]
pub(crate) enum PatchBody {
    Operations(JsonBody),
    MergePatch(JsonBody),
}

impl JsonBody {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("it was checked when it was made")
    }

    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let bytes = body_of(request)?;
        text_of(&bytes)?;
        Ok(Self(bytes))
    }
}

/// The text of a body.
///
/// # Errors
/// [`ApiError::InvalidJson`].
pub fn text_of(body: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(body).map_err(|error| {
        let fault = JsonError::at("not UTF-8", body, error.valid_up_to());
        ApiError::InvalidJson(fault)
    })
}

impl FromRequest for JsonBody {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let wanted = "application/json";
        ready(match BodyType::of(request.headers(), wanted) {
            Ok(BodyType::Json) => Self::of(request),
            Ok(BodyType::MergePatch) => Err(ApiError::UnsupportedMediaType { wanted }),
            Err(error) => Err(error),
        })
    }
}

impl FromRequest for PatchBody {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let wanted = "application/json or application/merge-patch+json";
        ready(match BodyType::of(request.headers(), wanted) {
            Ok(BodyType::Json) => JsonBody::of(request).map(Self::Operations),
            Ok(BodyType::MergePatch) => JsonBody::of(request).map(Self::MergePatch),
            Err(error) => Err(error),
        })
    }
}
