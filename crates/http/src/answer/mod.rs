//! Builds answers.

pub(super) mod compressor;
pub(crate) mod gzip;
pub(super) mod json;
pub(super) mod memory;
pub(super) mod negotiation;
pub(super) mod receipt;
pub(crate) mod streamed;

use actix_web::http::header::HeaderName;

/// The length of an array or a history of which the answer shows a part.
pub(super) const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
