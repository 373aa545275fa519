//! Serves the OpenAPI document, and serves Swagger UI at `/docs` from files that are embedded in the binary.

use std::sync::{LazyLock, OnceLock};

use actix_web::http::header::ContentType;
use actix_web::web::{self, Bytes, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use utoipa::Modify;
use utoipa::openapi::path::{HttpMethod, OperationBuilder};
use utoipa::openapi::{ContentBuilder, OpenApi, ResponseBuilder};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::openapi_json;
use crate::methods::read_only;
use crate::{Encoded, gzip};

pub(crate) fn routes(config: &mut ServiceConfig) {
    let page = Config::from("/openapi.json")
        .validator_url("none")
        .doc_expansion("none")
        .default_models_expand_depth(0)
        .display_request_duration(true);
    config
        .service(read_only("/openapi.json", document))
        .service(web::redirect("/docs", "/docs/"))
        .service(read_only("/docs/", index))
        .service(SwaggerUi::new("/docs/{_:.*}").config(page));
}

async fn index() -> HttpResponse {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        include_str!("docs.html").replace("{colours}", include_str!("colours.css"))
    });
    HttpResponse::Ok()
        .content_type(ContentType::html())
        .body(PAGE.as_str())
}

async fn document(request: HttpRequest) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.content_type(ContentType::json());
    let plain = Bytes::from_static(openapi_json().as_bytes());
    Encoded::choose(&request, plain, compressed).answer(response)
}

/// Returns the OpenAPI document in gzip format. The document never changes, so it is compressed only once.
fn compressed() -> Bytes {
    static GZIP: OnceLock<Bytes> = OnceLock::new();
    GZIP.get_or_init(|| gzip(openapi_json().as_bytes(), Compression::best()))
        .clone()
}

/// Adds the path `/metrics`, whose handler is outside this crate.
pub(super) struct Metrics;

impl Modify for Metrics {
    fn modify(&self, document: &mut OpenApi) {
        let text = ResponseBuilder::new()
            .description("The metrics as OpenMetrics text.")
            .content(
                "application/openmetrics-text",
                ContentBuilder::new().build(),
            );
        let operation = OperationBuilder::new()
            .tag("operations")
            .operation_id(Some("metrics"))
            .summary(Some("Retrieve metrics for Prometheus"))
            .description(Some(
                "If `metrics_listen` is set, metrics are available only at that address.",
            ))
            .response("200", text);
        document
            .paths
            .add_path_operation("/metrics", vec![HttpMethod::Get], operation);
    }
}
