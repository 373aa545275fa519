use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::json::json;
use crate::answer::ApiResult;
use crate::request::ReadConditions;
use threadkeep_domain::scope::Appended;
use threadkeep_domain::{Answer, Stamp, Written};
use threadkeep_store::StateBody;
use threadkeep_web::tag;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Builds the response to a read: JSON with its entity tag, or 304 if the client already has this version. Fails with
/// 412 if the client requires a different version.
pub(crate) fn content(
    conditions: &ReadConditions,
    stamp: Stamp,
    json: impl Into<Bytes>,
) -> ApiResult<Content> {
    let (status, body) = match conditions.check(stamp)? {
        true => (StatusCode::NOT_MODIFIED, None),
        false => (StatusCode::OK, Some(json.into())),
    };
    let builder = tagged(status, stamp);
    Ok(Content { builder, body })
}

/// Builds the response to a read of a whole state, as plain or compressed JSON.
///
/// Both forms have the same entity tag, because a client can use the tag of either form as a condition for a write.
/// [RFC 9110, section 8.8.3.3](https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3.3) recommends a different strong
/// tag for each form. The recommendation matters only to clients that combine partial responses, which the API does not
/// support.
pub(crate) fn state(
    conditions: &ReadConditions,
    stamp: Stamp,
    body: StateBody,
) -> ApiResult<Content> {
    match body {
        StateBody::Text(text) | StateBody::Compressible(text) => content(conditions, stamp, text),
        StateBody::Gzip(gzip) => {
            let mut answer = content(conditions, stamp, gzip)?;
            if answer.body.is_some() {
                answer.builder.insert_header((CONTENT_ENCODING, "gzip"));
            }
            Ok(answer)
        }
    }
}

pub(crate) fn not_modified(stamp: Stamp) -> HttpResponse {
    tagged(StatusCode::NOT_MODIFIED, stamp).finish()
}

pub(crate) fn tagged(status: StatusCode, stamp: Stamp) -> HttpResponseBuilder {
    let mut builder = HttpResponse::build(status);
    tag(&mut builder, stamp);
    builder
}

pub(crate) struct Content {
    pub(crate) builder: HttpResponseBuilder,
    body: Option<Bytes>,
}

impl Content {
    pub(crate) fn finish(mut self) -> HttpResponse {
        match self.body {
            Some(json) => self.builder.insert_header(is_json()).body(json),
            None => self.builder.finish(),
        }
    }
}

pub(crate) fn receipt(written: &Written) -> HttpResponse {
    let mut json = head(written);
    if let [answer] = &written.answers[..] {
        write_answer(&mut json, answer, ",");
    }
    json.push('}');
    respond(StatusCode::OK, written, json)
}

pub(crate) fn merge_receipt(written: &Written) -> HttpResponse {
    let mut json = head(written);
    json.push_str(",\"results\":[");
    for (index, answer) in written.answers.iter().enumerate() {
        json.push_str(if index > 0 { ",{" } else { "{" });
        write_answer(&mut json, answer, "");
        json.push('}');
    }
    json.push_str("]}");
    respond(StatusCode::OK, written, json)
}

pub(crate) fn respond(status: StatusCode, written: &Written, json: String) -> HttpResponse {
    let mut builder = tagged(status, written.stamp);
    mark_replay(&mut builder, written.replayed);
    builder.insert_header(is_json()).body(json)
}

fn is_json() -> (HeaderName, HeaderValue) {
    (CONTENT_TYPE, HeaderValue::from_static("application/json"))
}

pub(crate) fn ok_or_replay(body: &impl Serialize, replayed: bool) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    mark_replay(&mut response, replayed);
    json(response, body)
}

pub fn mark_replay(builder: &mut HttpResponseBuilder, replayed: bool) {
    if replayed {
        builder.insert_header((REPLAYED, HeaderValue::from_static("true")));
    }
}

pub fn mark_answer_of_replay(response: &mut HttpResponse) {
    let headers = response.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
}

fn head(written: &Written) -> String {
    let mut json = String::with_capacity(96);
    json.push_str("{\"version\":");
    push_number(&mut json, written.stamp.version);
    json.push_str(",\"size_bytes\":");
    push_number(&mut json, written.size_bytes);
    json
}

fn write_answer(json: &mut String, answer: &Answer, before: &str) {
    let mut member = |name: &str| {
        json.push_str(before);
        json.push_str(name);
    };
    match answer {
        Answer::Done | Answer::Skipped => {}
        Answer::Deleted(true) => member("\"deleted\":true"),
        Answer::Deleted(false) => member("\"deleted\":false"),
        Answer::Length(length) => {
            member("\"length\":");
            push_number(json, *length);
        }
        Answer::Popped(elements) => {
            member("\"values\":");
            json.push_str(elements.as_str());
        }
        Answer::Value(value) => {
            member("\"value\":");
            push_number(json, *value);
        }
        Answer::Settled { state, repeated } => {
            let state = state.as_str();
            member(&format!("\"state\":\"{state}\",\"repeated\":{repeated}"));
        }
        Answer::Appended(id, Appended { seq, repeated }) => {
            let id = serde_json::Value::from(id.as_str());
            member(&format!(
                "\"id\":{id},\"seq\":{seq},\"repeated\":{repeated}"
            ));
        }
    }
}

/// Appends `number` without `format!`, which is slower. Every receipt contains numbers.
fn push_number(json: &mut String, number: impl itoa::Integer) {
    json.push_str(itoa::Buffer::new().format(number));
}
