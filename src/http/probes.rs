//! Whether the process is up, and whether it can work.

use actix_web::{HttpResponse, web};

use super::Api;
use super::error::ApiError;
use super::schemas::{Health, Problem};

/// Whether the process is up
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "around",
    responses((status = 200, description = "It is.", body = Health)),
)]
pub(super) async fn healthz() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(r#"{"status":"ok"}"#)
}

/// Whether the store answers
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "around",
    responses(
        (status = 200, description = "It does.", body = Health),
        (status = 503, description = "It does not.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    api.service.ping().await?;
    Ok(healthz().await)
}
