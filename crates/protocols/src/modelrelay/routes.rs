use std::future::ready;

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};

use super::{
    ModelRelay, RelayError, artifacts, events, messages, responses, runs, sessions, state_handles,
    tool_calls,
};
use crate::frame::frame;

/// Path prefixes of all routes. The empty prefix is for clients that use the server's root as their base URL.
const ROOTS: [&str; 2] = ["/api/v1", ""];

impl ModelRelay {
    pub fn configure(&self, config: &mut ServiceConfig) {
        config.app_data(web::Data::new(self.clone()));
        for root in ROOTS {
            let families = FAMILIES.into_iter();
            let responses = self.responses.is_some().then_some(RESPONSES);
            for (below, routes) in families.chain(responses) {
                config.service(
                    web::scope(&format!("{root}{below}"))
                        .wrap(from_fn(frame::<Self, _>))
                        .configure(routes)
                        .default_service(not_found()),
                );
            }
        }
        config.service(
            web::scope(ROOTS[0])
                .wrap(from_fn(frame::<Self, _>))
                .default_service(not_found()),
        );
    }
}

type Routes = fn(&mut ServiceConfig);

const FAMILIES: [(&str, Routes); 4] = [
    ("/state-handles", handle_routes),
    ("/sessions", session_routes),
    ("/runs", run_routes),
    ("/tool-calls", tool_routes),
];

/// Routes that exist only if models are configured.
const RESPONSES: (&str, Routes) = ("/responses", response_routes);

fn handle_routes(config: &mut ServiceConfig) {
    config
        .service(
            at("", "GET, POST")
                .route(web::post().to(state_handles::create_handle))
                .route(web::get().to(state_handles::list_handles)),
        )
        .service(
            at("/{id}", "GET, DELETE")
                .route(web::get().to(state_handles::get_handle))
                .route(web::delete().to(state_handles::delete_handle)),
        )
        .service(at("/{id}/extend", "POST").route(web::post().to(state_handles::extend_handle)));
}

fn session_routes(config: &mut ServiceConfig) {
    config
        .service(
            at("", "GET, POST")
                .route(web::post().to(sessions::create_session))
                .route(web::get().to(sessions::list_sessions)),
        )
        .service(
            at("/{id}", "GET, PATCH, DELETE")
                .route(web::get().to(sessions::get_session))
                .route(web::patch().to(sessions::patch_session))
                .route(web::delete().to(sessions::delete_session)),
        )
        .service(at("/{id}/messages", "POST").route(web::post().to(messages::add_message)))
        .service(at("/{id}/clear", "POST").route(web::post().to(sessions::clear_session)));
}

fn run_routes(config: &mut ServiceConfig) {
    config
        .service(at("", "POST").route(web::post().to(runs::create_run)))
        .service(at("/{id}", "GET").route(web::get().to(runs::get_run)))
        .service(at("/{id}/complete", "POST").route(web::post().to(runs::complete_run)))
        .service(at("/{id}/events", "GET").route(web::get().to(events::get_events)))
        .service(at("/{id}/tasks", "GET").route(web::get().to(artifacts::get_tasks)))
        .service(at("/{id}/steps", "GET").route(web::get().to(artifacts::get_steps)))
        .service(
            at("/{id}/pending-tools", "GET").route(web::get().to(artifacts::get_pending_tools)),
        )
        .service(
            at("/{id}/tool-results", "POST").route(web::post().to(artifacts::post_tool_results)),
        )
        .service(at("/{id}/artifacts/{key}", "GET").route(web::get().to(artifacts::get_artifact)));
}

fn tool_routes(config: &mut ServiceConfig) {
    config.service(at("", "POST").route(web::post().to(tool_calls::call_tools)));
}

fn response_routes(config: &mut ServiceConfig) {
    config.service(at("", "POST").route(web::post().to(responses::create_response)));
}

/// Creates a resource that answers 405 to methods without a route. `allow` lists the methods that have a route.
fn at(path: &str, allow: &'static str) -> Resource {
    let refused = move || ready(Err::<&str, _>(RelayError::MethodNotAllowed { allow }));
    web::resource(path).default_service(web::to(refused))
}

fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(RelayError::NotFound("path"))))
}
