//! What a write of an entry brings: bytes, what they are, and what must be there before.

use std::future::{Ready, ready};

use actix_web::http::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpMessage, HttpRequest, dev};

use super::conditions::precondition;
use super::error::ApiError;
use super::exchange::Exchange;
use crate::domain::{ContentEncoding, ContentType, Precondition};

/// `If-Match`, or `If-None-Match: *`, of a write.
#[derive(Debug)]
pub(super) struct EntryConditions(pub(super) Option<Precondition>);

/// A body of any type.
#[derive(Debug)]
pub(super) struct AnyBody {
    pub(super) bytes: Bytes,
    pub(super) content_type: ContentType,
    pub(super) content_encoding: Option<ContentEncoding>,
}

/// A write whose body did not arrive whole is not done, whether it needs the body or not.
fn whole_body(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let extensions = request.extensions();
    let exchange = extensions.get::<Exchange>();
    let exchange = exchange.ok_or(ApiError::BodyUnreadable)?;
    exchange.body.bytes().cloned()
}

impl EntryConditions {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        whole_body(request)?;
        let wanted = precondition(request)?;
        let mut unwanted = request.headers().get_all(IF_NONE_MATCH);
        let refused = |detail: &str| Err(ApiError::InvalidParameter(detail.into()));
        match (wanted, unwanted.next(), unwanted.next()) {
            (wanted, None, _) => Ok(Self(wanted)),
            (None, Some(any), None) if any == "*" => Ok(Self(Some(Precondition::Version(0)))),
            (None, ..) => refused("If-None-Match of a write has to be `*`"),
            (Some(_), ..) => refused("If-Match does not go with If-None-Match"),
        }
    }
}

impl AnyBody {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let content_type = match header(request, CONTENT_TYPE)? {
            None => ContentType::unknown(),
            Some(text) => ContentType::new(text)?,
        };
        let content_encoding = header(request, CONTENT_ENCODING)?;
        Ok(Self {
            bytes: whole_body(request)?,
            content_type,
            content_encoding: content_encoding.map(ContentEncoding::new).transpose()?,
        })
    }
}

/// The text of a header that may be given once; an empty one says nothing.
fn header(request: &HttpRequest, name: HeaderName) -> Result<Option<&str>, ApiError> {
    let refused = || {
        let name = name.as_str();
        ApiError::InvalidParameter(format!(
            "`{name}` has to be printable ASCII, and given once"
        ))
    };
    let mut values = request.headers().get_all(&name);
    let (value, None) = (values.next(), values.next()) else {
        return Err(refused());
    };
    let text = value.map(HeaderValue::to_str).transpose();
    let text = text.map_err(|_| refused())?;
    Ok(text.filter(|text| !text.is_empty()))
}

impl FromRequest for EntryConditions {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

impl FromRequest for AnyBody {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
