//! Which path is whose.

use actix_web::web::{self, ServiceConfig};

use super::back_end::not_allowed_for_back_end;
use super::fallback::{not_allowed, not_allowed_for_thread, not_found};
use super::{
    Api, all_events, archives, entries, merge, namespaces, openapi, probes, state, thread_events,
    threads, webhooks,
};

impl Api {
    /// Adds the API to an app, which has [`super::envelope`] around it.
    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .configure(|config| thread_routes(config, "/v1/threads/current"))
            .configure(|config| thread_routes(config, "/v1/threads/{id}"))
            .service(
                web::resource("/v1/threads")
                    .route(web::post().to(threads::create_thread))
                    .default_service(not_allowed("POST")),
            )
            .configure(entry_routes)
            .configure(back_end_routes)
            .service(
                web::resource("/healthz")
                    .route(web::get().to(probes::healthz))
                    .route(web::head().to(probes::healthz))
                    .default_service(not_allowed("GET, HEAD")),
            )
            .service(
                web::resource("/readyz")
                    .route(web::get().to(probes::readyz))
                    .route(web::head().to(probes::readyz))
                    .default_service(not_allowed("GET, HEAD")),
            )
            .configure(openapi::routes)
            .default_service(not_found());
    }
}

/// What a path below a thread does, the most used first: the router tries them in order.
fn thread_routes(config: &mut ServiceConfig, thread: &str) {
    let path = |rest: &str| format!("{thread}{rest}");
    config
        .service(
            web::resource(path("/state"))
                .route(web::get().to(state::get_state))
                .route(web::patch().to(merge::patch_state))
                .route(web::put().to(merge::put_state))
                .route(web::delete().to(merge::delete_state))
                .route(web::head().to(state::get_state))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, PATCH, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/push"))
                .route(web::post().to(merge::push_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}"))
                .route(web::get().to(state::get_value))
                .route(web::put().to(merge::put_value))
                .route(web::delete().to(merge::delete_value))
                .route(web::head().to(state::get_value))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/increment"))
                .route(web::post().to(merge::increment_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/keys"))
                .route(web::get().to(state::get_keys))
                .route(web::head().to(state::get_keys))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path("/events"))
                .route(web::get().to(thread_events::get_thread_events))
                .route(web::head().to(thread_events::head_thread_events))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path(""))
                .route(web::get().to(threads::get_thread))
                .route(web::patch().to(threads::patch_thread))
                .route(web::delete().to(threads::delete_thread))
                .route(web::head().to(threads::get_thread))
                .default_service(not_allowed_for_thread("GET, HEAD, PATCH, DELETE")),
        );
}

/// Data of applications that outlives threads.
fn entry_routes(config: &mut ServiceConfig) {
    config
        .service(
            web::resource("/v1/kv/{namespace:[^/]*}/{key:[^/]*}")
                .route(web::get().to(entries::get_entry))
                .route(web::put().to(entries::put_entry))
                .route(web::delete().to(entries::delete_entry))
                .route(web::head().to(entries::get_entry))
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv/{namespace:[^/]*}")
                .route(web::get().to(namespaces::list_entries))
                .route(web::put().to(namespaces::put_namespace))
                .route(web::delete().to(namespaces::delete_namespace))
                .route(web::head().to(namespaces::list_entries))
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv")
                .route(web::get().to(namespaces::list_namespaces))
                .route(web::head().to(namespaces::list_namespaces))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        );
}

/// What is for back ends alone.
fn back_end_routes(config: &mut ServiceConfig) {
    config
        .service(
            web::resource("/v1/events")
                .route(web::get().to(all_events::get_events))
                .route(web::head().to(all_events::head_events))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives")
                .route(web::get().to(archives::list_archives))
                .route(web::head().to(archives::list_archives))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}")
                .route(web::get().to(archives::get_archive))
                .route(web::head().to(archives::get_archive))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}/restore")
                .route(web::post().to(archives::restore_archive))
                .default_service(not_allowed_for_back_end("POST")),
        )
        .service(
            web::resource("/v1/webhooks")
                .route(web::get().to(webhooks::list_webhooks))
                .route(web::post().to(webhooks::create_webhook))
                .route(web::head().to(webhooks::list_webhooks))
                .default_service(not_allowed_for_back_end("GET, HEAD, POST")),
        )
        .service(
            web::resource("/v1/webhooks/{id}")
                .route(web::get().to(webhooks::get_webhook))
                .route(web::patch().to(webhooks::patch_webhook))
                .route(web::delete().to(webhooks::delete_webhook))
                .route(web::head().to(webhooks::get_webhook))
                .default_service(not_allowed_for_back_end("GET, HEAD, PATCH, DELETE")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/failed")
                .route(web::get().to(webhooks::get_failed))
                .route(web::head().to(webhooks::get_failed))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/replay")
                .route(web::post().to(webhooks::replay_webhook))
                .default_service(not_allowed_for_back_end("POST")),
        );
}
