use actix_web::HttpRequest;
use actix_web::web::Bytes;

use super::context::body_of;
use super::extract::extract;
use crate::answer::{ApiResult, BodyType, JSON};
use threadkeep_domain::JsonError;
use threadkeep_web::ApiError;

#[derive(Debug)]
pub(crate) struct JsonBody(Bytes);

#[derive(Debug)]
pub(crate) enum PatchBody {
    Operations(JsonBody),
    MergePatch(JsonBody),
}

impl JsonBody {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("`of_any_type` rejects other text")
    }

    pub(crate) fn of(request: &HttpRequest) -> ApiResult<Self> {
        match BodyType::of(request.headers(), JSON)? {
            BodyType::Json => Self::of_any_type(request),
            BodyType::MergePatch => Err(ApiError::UnsupportedMediaType { wanted: JSON }),
        }
    }

    fn of_any_type(request: &HttpRequest) -> ApiResult<Self> {
        let bytes = body_of(request)?;
        text_of(&bytes)?;
        Ok(Self(bytes))
    }
}

impl PatchBody {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let wanted = "application/json or application/merge-patch+json";
        let kind = BodyType::of(request.headers(), wanted)?;
        let body = JsonBody::of_any_type(request)?;
        Ok(match kind {
            BodyType::Json => Self::Operations(body),
            BodyType::MergePatch => Self::MergePatch(body),
        })
    }
}

pub fn text_of(body: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(body).map_err(|error| {
        let fault = JsonError::at("not UTF-8", body, error.valid_up_to());
        ApiError::InvalidJson(fault)
    })
}

extract!(JsonBody, PatchBody);
