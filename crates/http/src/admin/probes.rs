use actix_web::{HttpResponse, web};

use crate::Api;
use crate::answer::{ApiResult, json};
use crate::problems::Unavailable;
use crate::schemas::Health;
use threadkeep_web::ApiError;

/// Check that the process is running
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "The process is running.", body = Health)),
)]
pub(crate) async fn healthz() -> HttpResponse {
    json(HttpResponse::Ok(), &Health { status: "ok" })
}

/// Check that the server accepts requests
///
/// Returns 200 if the store accepts writes and the server is not shutting down.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "The server accepts requests.", body = Health),
        Unavailable,
    ),
)]
pub(crate) async fn readyz(api: web::Data<Api>) -> ApiResult {
    if api.readiness.is_leaving() {
        return Err(ApiError::ShuttingDown);
    }
    if !api.readiness.is_fresh() {
        api.service.ping().await?;
        api.readiness.confirm();
    }
    Ok(healthz().await)
}
