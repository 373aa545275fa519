//! The page of metrics.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use actix_web::error::ErrorInternalServerError;
use actix_web::{Error, HttpResponse, Resource, web};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::web::ApiError;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /metrics`.
pub(super) fn resource(registry: Arc<Registry>) -> Resource {
    let for_head = Arc::clone(&registry);
    let allow = "GET, HEAD";
    web::resource("/metrics")
        .route(web::get().to(move || ready(page(&registry))))
        .route(web::head().to(move || ready(page(&for_head))))
        .default_service(web::to(move || {
            ready(Err::<&str, _>(ApiError::MethodNotAllowed { allow }))
        }))
}

fn page(registry: &Registry) -> Result<HttpResponse, Error> {
    let mut text = String::new();
    encode(&mut text, registry)
        .map_err(|fmt::Error| ErrorInternalServerError("the metrics cannot be written"))?;
    Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(text))
}
