use std::future::ready;

use actix_web::dev::HttpServiceFactory;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Scope, guard};

use super::{OpenAi, OpenAiError, conversations, items, responses};
use crate::frame::frame;
use threadkeep_http::{is_endless, is_openai_path};
use threadkeep_web::ApiError;

impl OpenAi {
    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .service(self.routes(web::scope("/openai/v1")))
            .service(
                self.routes(web::scope("/v1").guard(guard::fn_guard(|context| {
                    is_openai_path(context.head().uri.path())
                }))),
            );
    }

    fn routes(&self, base: Scope) -> impl HttpServiceFactory + use<> {
        let has_models = self.responses.is_some();
        let unknown = move || ready(Err::<&str, _>(OpenAiError::UnknownUrl { has_models }));
        base.wrap(from_fn(frame::<Self, _>))
            .configure(conversation_routes)
            .configure(|config| {
                if has_models {
                    response_routes(config);
                }
            })
            .default_service(web::to(unknown))
    }
}

fn conversation_routes(config: &mut ServiceConfig) {
    config
        .service(
            at("/conversations", "POST").route(web::post().to(conversations::create_conversation)),
        )
        .service(
            at(
                "/conversations/{conversation:[^/]*}",
                "GET, HEAD, POST, DELETE",
            )
            .route(web::get().to(conversations::get_conversation))
            .route(web::head().to(conversations::get_conversation))
            .route(web::post().to(conversations::update_conversation))
            .route(web::delete().to(conversations::delete_conversation)),
        )
        .service(
            at(
                "/conversations/{conversation:[^/]*}/items",
                "GET, HEAD, POST",
            )
            .route(web::get().to(items::list_items))
            .route(web::head().to(items::list_items))
            .route(web::post().to(items::add_items)),
        )
        .service(
            at(
                "/conversations/{conversation:[^/]*}/items/{item:[^/]*}",
                "GET, HEAD, DELETE",
            )
            .route(web::get().to(items::get_item))
            .route(web::head().to(items::get_item))
            .route(web::delete().to(items::delete_item)),
        );
}

fn response_routes(config: &mut ServiceConfig) {
    config
        .service(
            at("/responses", "POST")
                .route(web::post().to(responses::create_response))
                .route(
                    web::get()
                        .guard(guard::fn_guard(|context| is_endless(context.head())))
                        .to(responses::open_socket),
                ),
        )
        // must precede `/responses/{response}`, which would match these paths too
        .service(
            at("/responses/compact", "POST").route(web::post().to(responses::compact_response)),
        )
        .service(
            at("/responses/input_tokens", "POST")
                .route(web::post().to(responses::count_input_tokens)),
        )
        .service(
            at("/responses/{response:[^/]*}", "GET, HEAD, DELETE")
                .route(web::get().to(responses::get_response))
                .route(web::head().to(responses::get_response))
                .route(web::delete().to(responses::delete_response)),
        )
        .service(
            at("/responses/{response:[^/]*}/cancel", "POST")
                .route(web::post().to(responses::cancel_response)),
        )
        .service(
            at("/responses/{response:[^/]*}/input_items", "GET, HEAD")
                .route(web::get().to(responses::list_input_items))
                .route(web::head().to(responses::list_input_items)),
        )
        .service(
            at("/models", "GET, HEAD")
                .route(web::get().to(responses::list_models))
                .route(web::head().to(responses::list_models)),
        )
        .service(
            at("/models/{model:[^/]*}", "GET, HEAD")
                .route(web::get().to(responses::get_model))
                .route(web::head().to(responses::get_model)),
        );
}

/// Creates a resource that answers 405 to methods without a route. `allow` lists the methods that have a route.
fn at(path: &str, allow: &'static str) -> Resource {
    let refused = move |method: Method| {
        let refusal = ApiError::MethodNotAllowed { method, allow };
        ready(Err::<&str, _>(OpenAiError::from(refusal)))
    };
    web::resource(path).default_service(web::to(refused))
}
