use actix_cors::Cors;
use actix_web::http::header::{ETAG, HeaderName, RETRY_AFTER};

use crate::config::CorsOrigins;
use threadkeep_web::THREAD_VERSION;

/// How long a browser may cache a preflight response. Chromium limits this time to two hours.
const MAX_AGE_SECONDS: usize = 7_200;

pub(super) fn middleware(origins: &CorsOrigins) -> Cors {
    let header = HeaderName::from_static;
    let cors = Cors::default()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
        // allows all headers, because tracing libraries add their own headers; access depends only on the origin
        .allow_any_header()
        .expose_headers([
            ETAG,
            RETRY_AFTER,
            header("idempotency-replayed"),
            header("x-expires-at"),
            header("x-session-id"),
            header("x-thread-id"),
            THREAD_VERSION,
            header("x-total-count"),
        ])
        .max_age(MAX_AGE_SECONDS)
        // the API's responses set `Vary` themselves
        .disable_vary_header();
    match origins {
        CorsOrigins::None => cors,
        CorsOrigins::Any => cors.allow_any_origin().send_wildcard(),
        CorsOrigins::Named(origins) => origins
            .iter()
            .fold(cors, |cors, origin| cors.allowed_origin(origin))
            .supports_credentials(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, ORIGIN,
    };
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse, web};

    use super::*;

    const ORIGIN_OF_PAGE: &str = "https://a.example";

    async fn answer(origins: CorsOrigins, origin: &'static str) -> HeaderMap {
        let app = App::new().wrap(middleware(&origins)).route(
            "/",
            web::get().to(|| async { HttpResponse::NotFound().finish() }),
        );
        let request = TestRequest::get().insert_header((ORIGIN, origin));
        let app = init_service(app).await;
        call_service(&app, request.to_request())
            .await
            .headers()
            .clone()
    }

    fn text(headers: &HeaderMap, name: HeaderName) -> &str {
        headers.get(name).unwrap().to_str().unwrap()
    }

    #[actix_web::test]
    async fn named_origins_get_credentials_and_see_our_headers() {
        let named = CorsOrigins::Named(vec![ORIGIN_OF_PAGE.into()]);

        let headers = answer(named.clone(), ORIGIN_OF_PAGE).await;
        let unlisted = answer(named, "https://b.example").await;

        assert_eq!(text(&headers, ACCESS_CONTROL_ALLOW_ORIGIN), ORIGIN_OF_PAGE);
        assert_eq!(text(&headers, ACCESS_CONTROL_ALLOW_CREDENTIALS), "true");
        let exposed = text(&headers, ACCESS_CONTROL_EXPOSE_HEADERS);
        for name in [
            "x-thread-id",
            "x-session-id",
            "etag",
            "x-thread-version",
            "x-total-count",
            "idempotency-replayed",
        ] {
            assert!(exposed.contains(name), "{name} in {exposed}");
        }
        assert!(!unlisted.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    }

    #[actix_web::test]
    async fn any_origin_is_allowed_without_credentials() {
        let headers = answer(CorsOrigins::Any, ORIGIN_OF_PAGE).await;

        assert_eq!(text(&headers, ACCESS_CONTROL_ALLOW_ORIGIN), "*");
        assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));
    }
}
