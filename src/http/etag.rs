//! Entity tags.

use actix_web::http::header::HeaderValue;

use crate::domain::Stamp;

/// The entity tag of a version.
pub(super) fn etag(stamp: Stamp) -> HeaderValue {
    HeaderValue::try_from(format!("\"{stamp}\"")).expect("digits and hex are visible ASCII")
}
