use std::future::ready;

use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Route};

use super::envelope::reject_app_route;
use super::{UseAgent, UseAgentError, history, lists, threads};
use crate::frame::frame;
use threadkeep_web::ApiError;

/// Client routes that run agents.
const APP_ROUTES: [&str; 4] = [
    "/api/chat",
    "/api/chat/cancel",
    "/api/approve-tool",
    "/api/realtime/token",
];

impl UseAgent {
    pub fn configure(&self, config: &mut ServiceConfig) {
        config.app_data(web::Data::new(self.clone())).service(
            web::scope("/api/threads")
                .wrap(from_fn(frame::<Self, _>))
                .service(
                    web::resource("")
                        .route(web::get().to(lists::list_threads))
                        .route(web::head().to(lists::list_threads))
                        .route(web::post().to(threads::create_thread))
                        .default_service(not_allowed("GET, HEAD, POST")),
                )
                .service(
                    web::resource("/{thread:[^/]*}")
                        .route(web::get().to(history::get_thread))
                        .route(web::head().to(history::get_thread))
                        .route(web::patch().to(threads::patch_thread))
                        .route(web::delete().to(threads::delete_thread))
                        .default_service(not_allowed("GET, HEAD, PATCH, DELETE")),
                )
                .default_service(web::to(|| {
                    ready(Err::<&str, _>(UseAgentError::from(ApiError::NotFound)))
                })),
        );
        for path in APP_ROUTES {
            config.service(
                web::resource(path)
                    .wrap(from_fn(reject_app_route))
                    .default_service(web::to(|| ready(HttpResponse::NotFound()))),
            );
        }
    }
}

fn not_allowed(allow: &'static str) -> Route {
    web::to(move |method: Method| {
        let refusal = ApiError::MethodNotAllowed { method, allow };
        ready(Err::<&str, _>(UseAgentError::from(refusal)))
    })
}
