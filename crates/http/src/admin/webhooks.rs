use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse};

use super::webhook_body::{
    NewWebhookBody, ReplayBody, WebhookPatchBody, read_endpoint_change, read_new_endpoint,
    read_replay,
};
use super::webhook_error::with_api_error;
use super::webhook_object::{
    FailedEvent, FailedList, PendingObject, ReplayReceipt, WebhookList, WebhookObject,
};
use crate::answer::{ApiResult, json};
use crate::problems::{BackEndProblems, BodyProblems, Conflict, NotFound};
use crate::request::{BackEnd, JsonBody, Limit, Nothing, Page, Query, cursor, extract};
use crate::schemas::WebhookParam;
use threadkeep_web::ApiError;
use threadkeep_webhooks::WebhookId;

/// Endpoint id in the path. A malformed id causes the same error as an unknown endpoint.
#[derive(Debug)]
pub(crate) struct EndpointPath(WebhookId);

/// Create a webhook endpoint
///
/// The server delivers all subsequent events of the requested types to the endpoint. It signs each delivery with the
/// secret, according to [Standard Webhooks](https://www.standardwebhooks.com). Only this response contains the secret.
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
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let new = read_new_endpoint(body.as_str())?;
    let endpoint = with_api_error(api.webhooks.create(new.url, new.types, new.secret)).await?;
    let location = format!("/v1/webhooks/{}", endpoint.id);
    let mut response = HttpResponse::Created();
    response.insert_header((LOCATION, location));
    Ok(json(response, &WebhookObject::with_secret(&endpoint)))
}

/// List webhook endpoints
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    responses(
        (status = 200, description = "All webhook endpoints.", body = WebhookList),
        BackEndProblems,
    ),
)]
pub(crate) async fn list_webhooks(BackEnd { api, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    let endpoints = with_api_error(api.webhooks.list()).await?;
    let webhooks = endpoints.iter().map(WebhookObject::of).collect();
    Ok(json(HttpResponse::Ok(), &WebhookList { webhooks }))
}

/// Retrieve a webhook endpoint
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
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    let endpoint = with_api_error(api.webhooks.get(&id)).await?;
    Ok(json(HttpResponse::Ok(), &WebhookObject::of(&endpoint)))
}

/// Update a webhook endpoint
///
/// If the request sets a new secret, only this response contains the secret, and deliveries are also signed with the
/// old secret for another 24 hours. All replicas apply the change within seconds.
#[utoipa::path(
    patch,
    path = "/v1/webhooks/{id}",
    params(WebhookParam),
    request_body(content = WebhookPatchBody<'_>),
    responses(
        (status = 200, description = "The updated endpoint.", body = WebhookObject),
        NotFound,
        Conflict,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn patch_webhook(
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    let change = read_endpoint_change(body.as_str())?;
    let endpoint = with_api_error(api.webhooks.change(&id, &change)).await?;
    let object = match change.secret {
        Some(_) => WebhookObject::with_secret(&endpoint),
        None => WebhookObject::of(&endpoint),
    };
    Ok(json(HttpResponse::Ok(), &object))
}

/// Delete a webhook endpoint
///
/// Also cancels the endpoint's pending deliveries.
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
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    with_api_error(api.webhooks.delete(&id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// List pending deliveries
///
/// Returns the events that the server will try to deliver again, and the later events of the same threads, which wait
/// for the earlier events. Lists the oldest events first. If more than `limit` events are pending, returns an arbitrary
/// subset. The list may be a few seconds out of date.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/pending",
    params(
        WebhookParam,
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Maximum number of events to return, 100 by default."),
    ),
    responses(
        (status = 200, description = "Pending deliveries.", body = PendingObject),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_pending(
    BackEnd { api, .. }: BackEnd,
    Query(limit): Query<Limit<100, 100>>,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    let pending = with_api_error(api.webhooks.pending(&id, limit.get())).await?;
    Ok(json(HttpResponse::Ok(), &PendingObject::of(pending)))
}

/// List failed deliveries
///
/// Returns the events that the server could not deliver within 24 hours, oldest first.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/failed",
    params(
        WebhookParam,
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of events per page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of failed deliveries.", body = FailedList),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_failed(
    BackEnd { api, .. }: BackEnd,
    Query(page): Query<Page>,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    let ring = api.identity.ring();
    let list_id = id.as_str().as_bytes();
    let after = cursor::after(ring, list_id, page.cursor.as_deref())?;
    let failed = with_api_error(api.webhooks.failed(&id, after, page.limit())).await?;
    let list = FailedList {
        failed: failed.parked.into_iter().map(FailedEvent::of).collect(),
        next_cursor: cursor::next(ring, list_id, failed.next),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Replay failed deliveries
///
/// Redelivers the events that are listed in the body, or all failed events if there is no body.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/replay",
    params(WebhookParam),
    request_body(content = Option<ReplayBody>),
    responses(
        (status = 200, description = "The deliveries were scheduled.", body = ReplayReceipt),
        NotFound,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn replay_webhook(
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
    EndpointPath(id): EndpointPath,
) -> ApiResult {
    let event_ids = read_replay(body.as_str())?;
    let replayed = with_api_error(api.webhooks.replay(&id, event_ids.as_deref())).await?;
    Ok(json(HttpResponse::Ok(), &ReplayReceipt { replayed }))
}

impl EndpointPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let id = request.match_info().get("id").unwrap_or_default();
        id.parse().map(Self).map_err(|_| ApiError::WebhookNotFound)
    }
}

extract!(EndpointPath);
