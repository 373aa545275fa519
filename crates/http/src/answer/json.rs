//! Answers that are JSON.

use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

/// The JSON of an object with further members, whose JSON is copied and never parsed.
pub(crate) fn json_with(object: &impl Serialize, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut json = serde_json::to_vec(object).expect("text and numbers always serialize");
    json.pop();
    for (name, value) in members {
        json.extend_from_slice(format!(",\"{name}\":").as_bytes());
        json.extend_from_slice(value);
    }
    json.push(b'}');
    json
}

/// An answer of that status.
pub(crate) fn json(mut response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    response.content_type("application/json").body(body)
}
