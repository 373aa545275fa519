use actix_web::body::MessageBody;
use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::negotiation::JSON;

/// Serializes `object` with the additional `members`. The values of `members` are JSON text, which is copied without
/// parsing.
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

pub(crate) fn json(response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    json_text(response, body)
}

pub fn json_text(
    mut response: HttpResponseBuilder,
    json: impl MessageBody + 'static,
) -> HttpResponse {
    response.content_type(JSON).body(json)
}
