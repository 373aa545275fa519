//! Which path is whose.

use actix_web::Route;
use actix_web::web::{self, ServiceConfig};

use super::back_end::not_allowed_for_back_end;
use super::fallback::{not_allowed, not_allowed_for_thread, not_found};
use super::methods::{delete, get, head, patch, post, put};
use super::{
    Api, all_events, archives, entries, history, mcp_urls, merge, namespaces, openapi, probes,
    scope_kv, scope_tasks, scopes, state, thread_events, threads, tool_calls, tools, webhooks,
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
                    .route(post().to(threads::create_thread))
                    .default_service(not_allowed("POST")),
            )
            .configure(entry_routes)
            .configure(back_end_routes)
            .configure(scope_routes)
            .service(
                web::resource("/healthz")
                    .route(get().to(probes::healthz))
                    .route(head().to(probes::healthz))
                    .default_service(not_allowed("GET, HEAD")),
            )
            .service(
                web::resource("/readyz")
                    .route(get().to(probes::readyz))
                    .route(head().to(probes::readyz))
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
                .route(get().to(state::get_state))
                .route(patch().to(merge::patch_state))
                .route(put().to(merge::put_state))
                .route(delete().to(merge::delete_state))
                .route(head().to(state::get_state))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, PATCH, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/push"))
                .route(post().to(merge::push_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}"))
                .route(get().to(state::get_value))
                .route(put().to(merge::put_value))
                .route(delete().to(merge::delete_value))
                .route(head().to(state::get_value))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/increment"))
                .route(post().to(merge::increment_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/keys"))
                .route(get().to(state::get_keys))
                .route(head().to(state::get_keys))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path("/history"))
                .route(get().to(history::get_history))
                .route(post().to(history::append_history))
                .route(head().to(history::get_history))
                .default_service(not_allowed_for_thread("GET, HEAD, POST")),
        )
        .service(
            web::resource(path("/events"))
                .route(get().to(thread_events::get_thread_events))
                .route(head().to(thread_events::head_thread_events))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path(""))
                .route(get().to(threads::get_thread))
                .route(patch().to(threads::patch_thread))
                .route(delete().to(threads::delete_thread))
                .route(head().to(threads::get_thread))
                .default_service(not_allowed_for_thread("GET, HEAD, PATCH, DELETE")),
        );
}

/// Data of applications that outlives threads.
fn entry_routes(config: &mut ServiceConfig) {
    config
        .service(
            web::resource("/v1/kv/{namespace:[^/]*}/{key:[^/]*}")
                .route(get().to(entries::get_entry))
                .route(put().to(entries::put_entry))
                .route(delete().to(entries::delete_entry))
                .route(head().to(entries::get_entry))
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv/{namespace:[^/]*}")
                .route(get().to(namespaces::list_entries))
                .route(put().to(namespaces::put_namespace))
                .route(delete().to(namespaces::delete_namespace))
                .route(head().to(namespaces::list_entries))
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv")
                .route(get().to(namespaces::list_namespaces))
                .route(head().to(namespaces::list_namespaces))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        );
}

/// What is about the scope that a body names. The paths below it are all written to, in that what
/// is asked is in a body.
fn scope_routes(config: &mut ServiceConfig) {
    let mut add = |path: &str, route: Route| {
        let resource = web::resource(path).route(route);
        config.service(resource.default_service(not_allowed("POST")));
    };
    add("/v1/scopes/kv/get", post().to(scope_kv::get_values));
    add("/v1/scopes/kv/set", post().to(scope_kv::set_values));
    add("/v1/scopes/kv/delete", post().to(scope_kv::delete_key));
    add("/v1/scopes/kv/list", post().to(scope_kv::list_keys));
    add(
        "/v1/scopes/kv/increment",
        post().to(scope_kv::increment_key),
    );
    add("/v1/scopes/tasks/get", post().to(scope_tasks::get_tasks));
    add("/v1/scopes/tasks/set", post().to(scope_tasks::set_tasks));
    add(
        "/v1/scopes/tasks/update",
        post().to(scope_tasks::update_task),
    );
    add("/v1/scopes/describe", post().to(scopes::describe_scope));
    add("/v1/scopes/clear", post().to(scopes::clear_scope));
    add("/v1/tools/{name}", post().to(tools::call_tool));
    add("/v1/tool-calls", post().to(tool_calls::call_tools));
    config.service(
        web::resource("/v1/tools")
            .route(get().to(tools::list_tools))
            .route(head().to(tools::list_tools))
            .default_service(not_allowed("GET, HEAD")),
    );
    config.service(
        web::resource("/v1/scopes")
            .route(delete().to(scopes::end_scope))
            .default_service(not_allowed("DELETE")),
    );
}

/// What is for back ends alone.
fn back_end_routes(config: &mut ServiceConfig) {
    config
        .service(
            web::resource("/v1/events")
                .route(get().to(all_events::get_events))
                .route(head().to(all_events::head_events))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives")
                .route(get().to(archives::list_archives))
                .route(head().to(archives::list_archives))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}")
                .route(get().to(archives::get_archive))
                .route(head().to(archives::get_archive))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}/restore")
                .route(post().to(archives::restore_archive))
                .default_service(not_allowed_for_back_end("POST")),
        )
        .service(
            web::resource("/v1/archives/{id}/history")
                .route(get().to(history::get_final_history))
                .route(head().to(history::get_final_history))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/webhooks")
                .route(get().to(webhooks::list_webhooks))
                .route(post().to(webhooks::create_webhook))
                .route(head().to(webhooks::list_webhooks))
                .default_service(not_allowed_for_back_end("GET, HEAD, POST")),
        )
        .service(
            web::resource("/v1/webhooks/{id}")
                .route(get().to(webhooks::get_webhook))
                .route(patch().to(webhooks::patch_webhook))
                .route(delete().to(webhooks::delete_webhook))
                .route(head().to(webhooks::get_webhook))
                .default_service(not_allowed_for_back_end("GET, HEAD, PATCH, DELETE")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/failed")
                .route(get().to(webhooks::get_failed))
                .route(head().to(webhooks::get_failed))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/replay")
                .route(post().to(webhooks::replay_webhook))
                .default_service(not_allowed_for_back_end("POST")),
        )
        .service(
            web::resource("/v1/mcp-urls")
                .route(post().to(mcp_urls::create_mcp_url))
                .default_service(not_allowed_for_back_end("POST")),
        );
}
