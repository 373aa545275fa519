//! Whether the process is up, and whether it can work.

use actix_web::{HttpResponse, web};

use super::Api;
use super::error::ApiError;

/// The process is up.
pub(super) async fn healthz() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(r#"{"status":"ok"}"#)
}

/// The store answers.
pub(super) async fn readyz(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    api.service.ping().await?;
    Ok(healthz().await)
}
