//! Bodies about webhook endpoints.

use crate::domain::{EventId, EventType, EventTypes, elements};
use crate::http::request::members::{required, string};
use crate::http::request::shape::{body_members, read_body, read_optional_body};
use crate::web::ApiError;
use crate::webhooks::{EndpointChange, EndpointUrl, Secret};

/// Levels around a value: the body.
const AROUND: usize = 1;
/// Events that are replayed one by one at most.
const REPLAYS_MAX: usize = 100;

/// An endpoint to make.
pub(super) struct NewEndpoint {
    pub(crate) url: EndpointUrl,
    pub(crate) types: EventTypes,
    pub(crate) secret: Option<Secret>,
}

/// Reads the body of `POST /v1/webhooks`.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_new_endpoint(body: &str) -> Result<NewEndpoint, ApiError> {
    let body = read_body(body, AROUND)?;
    let [url, events, secret] = body_members(&body, ["url", "events", "secret"])?;
    Ok(NewEndpoint {
        url: read_url(required("url", url)?)?,
        types: read_types(required("events", events)?)?,
        secret: secret.map(read_secret).transpose()?,
    })
}

/// Reads the body of `PATCH /v1/webhooks/{id}`.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_endpoint_change(body: &str) -> Result<EndpointChange, ApiError> {
    let body = read_body(body, AROUND)?;
    let [url, events, secret] = body_members(&body, ["url", "events", "secret"])?;
    Ok(EndpointChange {
        url: url.map(read_url).transpose()?,
        types: events.map(read_types).transpose()?,
        secret: secret.map(read_secret).transpose()?,
    })
}

/// Reads the body of a replay: the events, or none for all.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_replay(body: &str) -> Result<Option<Vec<EventId>>, ApiError> {
    let body = read_optional_body(body, AROUND)?;
    let [events] = body_members(&body, ["events"])?;
    let Some(events) = events else {
        return Ok(None);
    };
    let events = strings("events", events)?;
    if !(1..=REPLAYS_MAX).contains(&events.len()) {
        let detail = format!("`events` has to have 1 to {REPLAYS_MAX} ids, or be left out");
        return Err(ApiError::InvalidParameter(detail));
    }
    let parse = |text: &String| {
        let id = text.parse();
        id.map_err(|error| ApiError::InvalidParameter(format!("`events`: {error}")))
    };
    events.iter().map(parse).collect::<Result<_, _>>().map(Some)
}

fn read_url(json: &str) -> Result<EndpointUrl, ApiError> {
    Ok(string("url", json)?.parse()?)
}

/// Null stands for a new one.
fn read_secret(json: &str) -> Result<Secret, ApiError> {
    if json == "null" {
        return Ok(Secret::random());
    }
    let secret = string("secret", json)?.parse();
    secret.map_err(|error| ApiError::InvalidParameter(format!("`secret`: {error}")))
}

fn read_types(json: &str) -> Result<EventTypes, ApiError> {
    let names = strings("events", json)?;
    let types = names.iter().map(|name| name.parse());
    let types: Vec<EventType> = types.collect::<Result<_, _>>()?;
    let set: EventTypes = types.iter().copied().collect();
    if types.is_empty() || set.iter().count() < types.len() {
        let detail = "`events` has to name event types, each once";
        return Err(ApiError::InvalidParameter(detail.into()));
    }
    Ok(set)
}

/// The strings of a list: one more than any list may have, to tell that it has too many.
fn strings(name: &str, json: &str) -> Result<Vec<String>, ApiError> {
    let malformed = || ApiError::InvalidParameter(format!("`{name}` has to be a list of strings"));
    if !json.starts_with('[') {
        return Err(malformed());
    }
    let first = elements(json).take(REPLAYS_MAX + 1);
    first
        .map(|text| serde_json::from_str(text).map_err(|_| malformed()))
        .collect()
}
