pub(super) mod compressor;
pub(crate) mod gzip;
pub(super) mod json;
pub(super) mod memory;
pub(super) mod negotiation;
pub(super) mod receipt;
pub(crate) mod streamed;

use actix_web::HttpResponse;
use actix_web::http::header::HeaderName;

pub(crate) use gzip::{AcceptsGzip, padded};
pub(crate) use json::{json, json_text, json_with};
pub(crate) use memory::{AnswerMemory, HeldResponse};
pub(crate) use negotiation::{BodyType, EVENT_STREAM, JSON, NDJSON, accepts, accepts_json};
pub(crate) use receipt::{
    content, mark_replay, merge_receipt, not_modified, ok_or_replay, receipt, respond, state,
    tagged,
};
pub(crate) use streamed::{COMMENT, streamed};
use threadkeep_web::ApiError;

pub(crate) type ApiResult<T = HttpResponse> = Result<T, ApiError>;

/// Header that contains the length of the whole array or history. Sent if the request reads only a part.
pub(super) const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
