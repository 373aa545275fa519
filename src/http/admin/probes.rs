//! Whether the process is up, and whether it can work.

use actix_web::{HttpResponse, web};

use crate::http::Api;
use crate::http::answer::json::json;
use crate::http::schemas::{Health, Problem};
use crate::web::ApiError;

/// Whether the process is up
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "around",
    responses((status = 200, description = "It is.", body = Health)),
)]
pub(crate) async fn healthz() -> HttpResponse {
    json(HttpResponse::Ok(), &Health { status: "ok" })
}

/// Whether requests may be sent here: the store takes writes, and the server is not about to stop
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "around",
    responses(
        (status = 200, description = "It does.", body = Health),
        (status = 503, description = "It does not, or the server is about to stop (`shutting_down`).", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    if api.readiness.is_leaving() {
        return Err(ApiError::ShuttingDown);
    }
    if !api.readiness.is_fresh() {
        api.service.ping().await?;
        api.readiness.confirm();
    }
    Ok(healthz().await)
}
