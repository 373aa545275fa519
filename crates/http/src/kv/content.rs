use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpResponse, HttpResponseBuilder};

use threadkeep_domain::{ContentEncoding, ContentError, ContentType, rfc3339};
use threadkeep_store::{Entry, EntryHead};

const EXPIRES_AT: HeaderName = HeaderName::from_static("x-expires-at");
/// Headers that isolate an entry in a browser. A stored page cannot run scripts or load resources, and has its own
/// origin.
const SECURITY: [(HeaderName, HeaderValue); 2] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    ),
];

#[derive(Debug)]
pub struct EntryContent {
    /// `application/octet-stream` by default.
    pub content_type: ContentType,
    pub content_encoding: Option<ContentEncoding>,
}

impl EntryContent {
    pub fn of(headers: &HeaderMap) -> Result<Self, ContentError> {
        let content_type = text(headers, CONTENT_TYPE)?;
        let content_encoding = text(headers, CONTENT_ENCODING)?;
        Ok(Self {
            content_type: content_type.map_or(Ok(ContentType::unknown()), ContentType::new)?,
            content_encoding: content_encoding.map(ContentEncoding::new).transpose()?,
        })
    }
}

/// Returns the value of a header that must not be repeated. Treats an empty header as absent.
fn text(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ContentError> {
    let mut values = headers.get_all(name);
    let (value, None) = (values.next(), values.next()) else {
        return Err(ContentError::Header);
    };
    let text = value.map(HeaderValue::to_str).transpose();
    let text = text.map_err(|_| ContentError::Header)?;
    Ok(text.filter(|text| !text.is_empty()))
}

pub fn entry_head(status: StatusCode, head: &EntryHead) -> HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    for header in SECURITY {
        answer.insert_header(header);
    }
    if let Some(expires_at) = head.expires_ms.and_then(rfc3339) {
        answer.insert_header((EXPIRES_AT, expires_at));
    }
    answer
}

pub fn entry_body(mut answer: HttpResponseBuilder, entry: Entry) -> HttpResponse {
    answer.insert_header((CONTENT_TYPE, entry.head.content_type.as_str()));
    if let Some(encoding) = &entry.head.content_encoding {
        answer.insert_header((CONTENT_ENCODING, encoding.as_str()));
    }
    answer.body(entry.body)
}
