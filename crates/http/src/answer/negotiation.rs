use actix_web::HttpRequest;
use actix_web::http::header::{
    ACCEPT, Accept, CONTENT_ENCODING, CONTENT_TYPE, Header, HeaderMap, HeaderValue, Quality,
};
use actix_web::mime::{self, Mime};

use crate::answer::ApiResult;
use threadkeep_web::ApiError;

pub(crate) const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";

pub(crate) const NDJSON: &str = "application/x-ndjson";

pub fn accepts_json(request: &HttpRequest) -> Result<(), ApiError> {
    accepts(request, JSON)
}

pub(crate) fn accepts(request: &HttpRequest, answer: &'static str) -> ApiResult<()> {
    match request.headers().get(ACCEPT).map(HeaderValue::as_bytes) {
        None | Some(b"*/*" | b"") => return Ok(()),
        Some(accepted) if accepted == answer.as_bytes() => return Ok(()),
        Some(_) => {}
    }
    let refused = || ApiError::NotAcceptable { answer };
    let accept = Accept::parse(request).map_err(|_| refused())?;
    // the most specific matching range applies (RFC 9110, section 12.5.1)
    let (kind, _) = answer.split_once('/').unwrap_or((answer, ""));
    let specificity_of = |range: &Mime| match (range.type_(), range.subtype()) {
        _ if range.essence_str() == answer => Some(3),
        (of, mime::STAR) if of == kind => Some(2),
        (mime::STAR, mime::STAR) => Some(1),
        _ => None,
    };
    let best = accept
        .iter()
        .filter_map(|item| Some((specificity_of(&item.item)?, item.quality)))
        .max_by_key(|(specificity, _)| *specificity);
    match best {
        Some((_, quality)) if quality > Quality::ZERO => Ok(()),
        _ => Err(refused()),
    }
}

pub(crate) enum BodyType {
    Json,
    MergePatch,
}

impl BodyType {
    pub(crate) fn of(headers: &HeaderMap, wanted: &'static str) -> ApiResult<Self> {
        let refused = || ApiError::UnsupportedMediaType { wanted };
        if headers
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            return Err(refused());
        }
        let text = match headers.get(CONTENT_TYPE) {
            None => return Ok(Self::Json),
            Some(value) if value.is_empty() => return Ok(Self::Json),
            Some(value) if value == "application/json" => return Ok(Self::Json),
            Some(value) => value.to_str().map_err(|_| refused())?,
        };
        let mime: Mime = text.parse().map_err(|_| refused())?;
        if mime
            .get_param(mime::CHARSET)
            .is_some_and(|set| set != mime::UTF_8)
        {
            return Err(refused());
        }
        match mime.essence_str() {
            "application/json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::MergePatch),
            _ => Err(refused()),
        }
    }
}
