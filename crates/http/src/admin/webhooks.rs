//! Handlers of webhook endpoints, for back ends.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::webhook_body::{
    NewWebhookBody, ReplayBody, WebhookPatchBody, read_endpoint_change, read_new_endpoint,
    read_replay,
};
use super::webhook_error::webhook_error;
use super::webhook_object::{
    FailedEvent, FailedList, PendingObject, Replayed, WebhookList, WebhookObject,
};
use crate::ApiResult;
use crate::answer::negotiation::accepts_json;
use crate::problems::{BackEndProblems, BodyProblems, Conflict, NotFound};
use crate::request::back_end::BackEnd;
use crate::request::cursor;
use crate::request::json_body::JsonBody;
use crate::request::query::{Most, Nothing, Page, Query};
use crate::schemas::WebhookParam;
use threadkeep_web::ApiError;
use threadkeep_webhooks::WebhookId;

/// Create a webhook endpoint
///
/// From now on, the server delivers all events of its types there, signed with the secret as Standard Webhooks says.
/// Only this answer shows the secret.
#[utoipa::path(
    post,
    path = "/v1/webhooks",
    request_body(content = NewWebhookBody<'_>),
    responses(
        (status = 201, description = "The new endpoint.", body = WebhookObject, headers(("location" = String))),
        Conflict,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn create_webhook(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    accepts_json(&request)?;
    let new = read_new_endpoint(body.as_str())?;
    let made = api
        .webhooks
        .create(new.url, new.types, new.secret)
        .await
        .map_err(webhook_error)?;
    let location = format!("/v1/webhooks/{}", made.id);
    let mut response = HttpResponse::Created();
    response.insert_header((LOCATION, location));
    Ok(json(response, &WebhookObject::with_secret(&made)))
}

/// List webhook endpoints
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    responses(
        (status = 200, description = "All endpoints.", body = WebhookList),
        BackEndProblems,
    ),
)]
pub(crate) async fn list_webhooks(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
) -> ApiResult {
    accepts_json(&request)?;
    let endpoints = api.webhooks.list().await.map_err(webhook_error)?;
    let webhooks = endpoints.iter().map(WebhookObject::of).collect();
    Ok(json(HttpResponse::Ok(), &WebhookList { webhooks }))
}

/// Read a webhook endpoint
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}",
    params(WebhookParam),
    responses(
        (status = 200, description = "The endpoint.", body = WebhookObject),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_webhook(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
) -> ApiResult {
    accepts_json(&request)?;
    let endpoint = api
        .webhooks
        .get(&id_of(&request)?)
        .await
        .map_err(webhook_error)?;
    Ok(json(HttpResponse::Ok(), &WebhookObject::of(&endpoint)))
}

/// Change a webhook endpoint
///
/// Only this answer shows a new secret; the old one also signs for another 24 hours. All replicas notice a change within
/// seconds.
#[utoipa::path(
    patch,
    path = "/v1/webhooks/{id}",
    params(WebhookParam),
    request_body(content = WebhookPatchBody<'_>),
    responses(
        (status = 200, description = "The endpoint after the change.", body = WebhookObject),
        NotFound,
        Conflict,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn patch_webhook(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    accepts_json(&request)?;
    let id = id_of(&request)?;
    let change = read_endpoint_change(body.as_str())?;
    let endpoint = api
        .webhooks
        .change(&id, &change)
        .await
        .map_err(webhook_error)?;
    let object = match change.secret {
        Some(_) => WebhookObject::with_secret(&endpoint),
        None => WebhookObject::of(&endpoint),
    };
    Ok(json(HttpResponse::Ok(), &object))
}

/// Delete a webhook endpoint
///
/// Drops its pending deliveries.
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{id}",
    params(WebhookParam),
    responses(
        (status = 204, description = "The endpoint no longer exists."),
        NotFound,
        Conflict,
        BackEndProblems,
    ),
)]
pub(crate) async fn delete_webhook(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
) -> ApiResult {
    accepts_json(&request)?;
    api.webhooks
        .delete(&id_of(&request)?)
        .await
        .map_err(webhook_error)?;
    Ok(HttpResponse::NoContent().finish())
}

/// List pending deliveries
///
/// Events that the server could not deliver yet and will try again, and events of the same threads that wait for them, oldest
/// first. If there are more than `limit`, the list has any of them. It may be a few seconds behind.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/pending",
    params(
        WebhookParam,
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Events in the list, 100 by default."),
    ),
    responses(
        (status = 200, description = "Pending deliveries.", body = PendingObject),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_pending(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    Query(most): Query<Most>,
) -> ApiResult {
    accepts_json(&request)?;
    let id = id_of(&request)?;
    let found = api
        .webhooks
        .pending(&id, most.limit())
        .await
        .map_err(webhook_error)?;
    Ok(json(HttpResponse::Ok(), &PendingObject::of(found)))
}

/// List failed deliveries
///
/// Events that the server could not deliver for 24 hours, oldest first.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/failed",
    params(
        WebhookParam,
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Events on the page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of failed deliveries.", body = FailedList),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_failed(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    Query(page): Query<Page>,
) -> ApiResult {
    accepts_json(&request)?;
    let id = id_of(&request)?;
    let ring = api.identity.ring();
    let about = id.as_str().as_bytes();
    let after = page.cursor.as_deref();
    let after = after.map(|text| cursor::open(ring, about, text));
    let found = api.webhooks.failed(&id, after.transpose()?, page.limit());
    let found = found.await.map_err(webhook_error)?;
    let list = FailedList {
        failed: found.parked.into_iter().map(FailedEvent::of).collect(),
        next_cursor: found.next.map(|next| cursor::seal(ring, about, &next)),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Replay failed deliveries
///
/// Delivers all of them again, or those that the body names.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/replay",
    params(WebhookParam),
    request_body(content = Option<ReplayBody>),
    responses(
        (status = 200, description = "The deliveries are scheduled.", body = Replayed),
        NotFound,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn replay_webhook(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    accepts_json(&request)?;
    let id = id_of(&request)?;
    let only = read_replay(body.as_str())?;
    let replayed = api
        .webhooks
        .replay(&id, only.as_deref())
        .await
        .map_err(webhook_error)?;
    Ok(json(HttpResponse::Ok(), &Replayed { replayed }))
}

/// The id in the path. A malformed id belongs to no endpoint.
fn id_of(request: &HttpRequest) -> ApiResult<WebhookId> {
    let id = request.match_info().get("id").unwrap_or_default();
    id.parse().map_err(|_| ApiError::WebhookNotFound)
}

fn json(mut response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    response.content_type("application/json").body(body)
}
