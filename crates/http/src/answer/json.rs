//! Answers that are JSON.

use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

/// An answer of that status.
pub(crate) fn json(mut response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    response.content_type("application/json").body(body)
}
