//! How answers are put together.

pub(super) mod json;
pub(super) mod memory;
pub(super) mod negotiation;
pub(super) mod receipt;

use actix_web::http::header::HeaderName;

/// How many elements an array or a history has, of which an answer shows a part.
pub(super) const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
