//! Reads of a state.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};

use super::conditions::ReadConditions;
use super::error::ApiError;
use super::key_path::KeyPath;
use super::query::{Keys, Nothing, Part, Query};
use super::receipt::content;
use super::target::Target;

const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

pub(super) async fn get_state(
    target: Target,
    conditions: ReadConditions,
    Query(Keys(keys)): Query<Keys>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let found = if keys.is_empty() {
        service.get_state(&target.id).await?
    } else {
        service.get_values(&target.id, keys).await?
    };
    Ok(content(&conditions, found.stamp, found.content)?.finish())
}

pub(super) async fn get_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: ReadConditions,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let found = service.get_value(&target.id, &key, part.slice()).await?;
    let mut answer = content(&conditions, found.stamp, found.content.json)?;
    if let Some(total) = found.content.total {
        answer
            .builder
            .insert_header((TOTAL_COUNT, HeaderValue::from(total)));
    }
    Ok(answer.finish())
}

pub(super) async fn get_keys(
    target: Target,
    conditions: ReadConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let found = target.api.service.get_keys(&target.id).await?;
    let mut json = vec![b'['];
    for (place, key) in found.content.iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        key.write_json(&mut json);
    }
    json.push(b']');
    Ok(content(&conditions, found.stamp, json)?.finish())
}
