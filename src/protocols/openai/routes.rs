//! Which path is whose.

use std::future::ready;

use actix_web::Route;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};

use super::envelope::envelope;
use super::{OpenAi, OpenAiError, conversations, items};
use crate::web::ApiError;

impl OpenAi {
    /// Adds the protocol to an app, which has the envelope of the API around it.
    pub fn configure(&self, config: &mut ServiceConfig) {
        config.app_data(web::Data::new(self.clone())).service(
            web::scope("/openai/v1")
                .wrap(from_fn(envelope))
                .service(
                    web::resource("/conversations")
                        .route(web::post().to(conversations::create_conversation))
                        .default_service(not_allowed("POST")),
                )
                .service(
                    web::resource("/conversations/{conversation:[^/]*}")
                        .route(web::get().to(conversations::get_conversation))
                        .route(web::head().to(conversations::get_conversation))
                        .route(web::post().to(conversations::update_conversation))
                        .route(web::delete().to(conversations::delete_conversation))
                        .default_service(not_allowed("GET, HEAD, POST, DELETE")),
                )
                .service(
                    web::resource("/conversations/{conversation:[^/]*}/items")
                        .route(web::get().to(items::list_items))
                        .route(web::head().to(items::list_items))
                        .route(web::post().to(items::add_items))
                        .default_service(not_allowed("GET, HEAD, POST")),
                )
                .service(
                    web::resource("/conversations/{conversation:[^/]*}/items/{item:[^/]*}")
                        .route(web::get().to(items::get_item))
                        .route(web::head().to(items::get_item))
                        .route(web::delete().to(items::delete_item))
                        .default_service(not_allowed("GET, HEAD, DELETE")),
                )
                .default_service(web::to(|| ready(Err::<&str, _>(OpenAiError::UnknownUrl)))),
        );
    }
}

/// Rejects a method that a path does not support.
fn not_allowed(allow: &'static str) -> Route {
    web::to(move |method: Method| {
        let refusal = ApiError::MethodNotAllowed { method, allow };
        ready(Err::<&str, _>(OpenAiError::from(refusal)))
    })
}
