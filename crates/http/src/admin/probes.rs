use actix_web::{HttpResponse, web};

use crate::Api;
use crate::answer::{ApiResult, json};
use crate::problems::Unavailable;
use crate::schemas::Health;
use threadkeep_web::ApiError;

/// Check that the process is up
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "It is up.", body = Health)),
)]
pub(crate) async fn healthz() -> HttpResponse {
    json(HttpResponse::Ok(), &Health { status: "ok" })
}

/// Check that the server accepts requests
///
/// Requires that the store accepts writes, and that the server is not about to stop.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "It takes requests.", body = Health),
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
