//! Which path is whose.

use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};

use super::fallback::{not_allowed, not_allowed_for_thread, not_found};
use super::methods::{delete, get, head, patch, post, put, read_only};
use super::request::back_end::not_allowed_for_back_end;
use super::{Api, admin, events, kv, openapi, scopes, threads, tools};

impl Api {
    /// Adds the API to an app, which has [`super::envelope`] around it.
    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .service(
                web::resource("/v1/threads/import")
                    .route(post().to(threads::images::import_thread))
                    .default_service(not_allowed_for_back_end("POST")),
            )
            .configure(|config| thread_routes(config, "/v1/threads/current"))
            .configure(|config| thread_routes(config, "/v1/threads/{id}"))
            .service(
                web::resource("/v1/threads")
                    .route(get().to(threads::lists::list_threads))
                    .route(head().to(threads::lists::list_threads))
                    .route(post().to(threads::lifecycle::create_thread))
                    .default_service(not_allowed("GET, HEAD, POST")),
            )
            .configure(entry_routes)
            .configure(back_end_routes)
            .configure(scope_routes)
            .service(read_only("/healthz", admin::probes::healthz))
            .service(read_only("/readyz", admin::probes::readyz))
            .configure(openapi::routes)
            .default_service(not_found());
    }
}

/// The operations on a path below a thread, the most used first: the router tries them in order.
fn thread_routes(config: &mut ServiceConfig, thread: &str) {
    let path = |rest: &str| format!("{thread}{rest}");
    config
        .service(
            web::resource(path("/state"))
                .route(get().to(threads::state::get_state))
                .route(patch().to(threads::writes::patch_state))
                .route(put().to(threads::writes::put_state))
                .route(delete().to(threads::writes::delete_state))
                .route(head().to(threads::state::get_state))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, PATCH, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/push"))
                .route(post().to(threads::writes::push_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}"))
                .route(get().to(threads::state::get_value))
                .route(put().to(threads::writes::put_value))
                .route(delete().to(threads::writes::delete_value))
                .route(head().to(threads::state::get_value))
                .default_service(not_allowed_for_thread("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource(path("/state/{key:[^/]*}/increment"))
                .route(post().to(threads::writes::increment_value))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/keys"))
                .route(get().to(threads::state::get_keys))
                .route(head().to(threads::state::get_keys))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path("/history"))
                .route(get().to(threads::history::get_history))
                .route(post().to(threads::history::append_history))
                .route(delete().to(threads::history_removal::delete_history))
                .route(head().to(threads::history::get_history))
                .default_service(not_allowed_for_thread("GET, HEAD, POST, DELETE")),
        )
        .service(
            // an item may have this id
            web::resource(path("/history/take"))
                .route(post().to(threads::history_removal::take_history))
                .route(delete().to(threads::history_removal::delete_history_item))
                .default_service(not_allowed_for_thread("POST, DELETE")),
        )
        .service(
            // items may have these ids
            web::resource(path("/history/compact"))
                .route(post().to(threads::compaction::compact_history))
                .route(delete().to(threads::history_removal::delete_history_item))
                .default_service(not_allowed_for_thread("POST, DELETE")),
        )
        .service(
            web::resource(path("/history/segments"))
                .route(get().to(threads::compaction::list_segments))
                .route(head().to(threads::compaction::list_segments))
                .route(delete().to(threads::history_removal::delete_history_item))
                .default_service(not_allowed_for_thread("GET, HEAD, DELETE")),
        )
        .service(
            web::resource(path("/history/segments/{n:[^/]*}"))
                .route(get().to(threads::compaction::get_segment))
                .route(head().to(threads::compaction::get_segment))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path("/history/{item:[^/]*}"))
                .route(delete().to(threads::history_removal::delete_history_item))
                .default_service(not_allowed_for_thread("DELETE")),
        )
        .service(
            web::resource(path("/turn"))
                .route(post().to(threads::turns::take_turn))
                .route(patch().to(threads::turns::renew_turn))
                .route(delete().to(threads::turns::end_turn))
                .route(get().to(threads::turns::get_turn))
                .route(head().to(threads::turns::get_turn))
                .default_service(not_allowed_for_thread("GET, HEAD, POST, PATCH, DELETE")),
        )
        .service(
            web::resource(path("/checkpoints"))
                .route(get().to(threads::checkpoints::list_checkpoints))
                .route(post().to(threads::checkpoints::save_checkpoint))
                .route(head().to(threads::checkpoints::list_checkpoints))
                .default_service(not_allowed_for_thread("GET, HEAD, POST")),
        )
        .service(
            web::resource(path("/checkpoints/{n:[^/]*}/restore"))
                .route(post().to(threads::checkpoints::restore_checkpoint))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/checkpoints/{n:[^/]*}"))
                .route(get().to(threads::checkpoints::get_checkpoint))
                .route(delete().to(threads::checkpoints::delete_checkpoint))
                .route(head().to(threads::checkpoints::get_checkpoint))
                .default_service(not_allowed_for_thread("GET, HEAD, DELETE")),
        )
        .service(
            web::resource(path("/rotate"))
                .route(post().to(threads::rotation::rotate_thread))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/fork"))
                .route(post().to(threads::images::fork_thread))
                .default_service(not_allowed_for_thread("POST")),
        )
        .service(
            web::resource(path("/export"))
                .route(get().to(threads::images::export_thread))
                .route(head().to(threads::images::export_thread))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path("/events"))
                .route(get().to(events::of_thread::get_thread_events))
                .route(head().to(events::of_thread::head_thread_events))
                .default_service(not_allowed_for_thread("GET, HEAD")),
        )
        .service(
            web::resource(path(""))
                .route(get().to(threads::lifecycle::get_thread))
                .route(patch().to(threads::lifecycle::patch_thread))
                .route(delete().to(threads::lifecycle::delete_thread))
                .route(head().to(threads::lifecycle::get_thread))
                .default_service(not_allowed_for_thread("GET, HEAD, PATCH, DELETE")),
        );
}

/// Data of applications that outlives threads.
fn entry_routes(config: &mut ServiceConfig) {
    config
        .service(
            // an entry may have this key
            entry("/v1/kv/{namespace:[^/]*}/get")
                .route(post().to(kv::batches::get_entries))
                .default_service(not_allowed_for_back_end("GET, HEAD, POST, PUT, DELETE")),
        )
        .service(
            entry("/v1/kv/{namespace:[^/]*}/put")
                .route(post().to(kv::batches::put_entries))
                .default_service(not_allowed_for_back_end("GET, HEAD, POST, PUT, DELETE")),
        )
        .service(
            entry("/v1/kv/{namespace:[^/]*}/{key:[^/]*}")
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv/{namespace:[^/]*}")
                .route(get().to(kv::namespaces::list_entries))
                .route(put().to(kv::namespaces::put_namespace))
                .route(delete().to(kv::namespaces::delete_namespace))
                .route(head().to(kv::namespaces::list_entries))
                .default_service(not_allowed_for_back_end("GET, HEAD, PUT, DELETE")),
        )
        .service(
            web::resource("/v1/kv")
                .route(get().to(kv::namespaces::list_namespaces))
                .route(head().to(kv::namespaces::list_namespaces))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        );
}

/// An entry at that path.
fn entry(path: &str) -> Resource {
    web::resource(path)
        .route(get().to(kv::entries::get_entry))
        .route(put().to(kv::entries::put_entry))
        .route(delete().to(kv::entries::delete_entry))
        .route(head().to(kv::entries::get_entry))
}

/// Operations on the scope that a body names. The paths below it take POST, since the request is in a body.
fn scope_routes(config: &mut ServiceConfig) {
    let mut add = |path: &str, route: Route| {
        let resource = web::resource(path).route(route);
        config.service(resource.default_service(not_allowed("POST")));
    };
    add("/v1/scopes/kv/get", post().to(scopes::values::get_values));
    add("/v1/scopes/kv/set", post().to(scopes::values::set_values));
    add(
        "/v1/scopes/kv/delete",
        post().to(scopes::values::delete_key),
    );
    add("/v1/scopes/kv/list", post().to(scopes::values::list_keys));
    add(
        "/v1/scopes/kv/increment",
        post().to(scopes::values::increment_key),
    );
    add("/v1/scopes/tasks/get", post().to(scopes::tasks::get_tasks));
    add("/v1/scopes/tasks/set", post().to(scopes::tasks::set_tasks));
    add(
        "/v1/scopes/tasks/update",
        post().to(scopes::tasks::update_task),
    );
    add(
        "/v1/scopes/describe",
        post().to(scopes::lifecycle::describe_scope),
    );
    add(
        "/v1/scopes/clear",
        post().to(scopes::lifecycle::clear_scope),
    );
    add("/v1/tools/{name}", post().to(tools::single::call_tool));
    add("/v1/tool-calls", post().to(tools::calls::call_tools));
    config.service(
        web::resource("/v1/tools")
            .route(get().to(tools::single::list_tools))
            .route(head().to(tools::single::list_tools))
            .default_service(not_allowed("GET, HEAD")),
    );
    config.service(
        web::resource("/v1/scopes")
            .route(delete().to(scopes::lifecycle::end_scope))
            .default_service(not_allowed("DELETE")),
    );
}

/// Operations for back ends.
fn back_end_routes(config: &mut ServiceConfig) {
    config
        .service(
            web::resource("/v1/events")
                .route(get().to(events::all::get_events))
                .route(head().to(events::all::head_events))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/export")
                .route(get().to(threads::exports::export_threads))
                .route(head().to(threads::exports::head_export))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives")
                .route(get().to(threads::archives::list_archives))
                .route(head().to(threads::archives::list_archives))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}")
                .route(get().to(threads::archives::get_archive))
                .route(head().to(threads::archives::get_archive))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/archives/{id}/restore")
                .route(post().to(threads::archives::restore_archive))
                .default_service(not_allowed_for_back_end("POST")),
        )
        .service(
            web::resource("/v1/archives/{id}/history")
                .route(get().to(threads::history::get_final_history))
                .route(head().to(threads::history::get_final_history))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/owners/{owner}")
                .route(get().to(threads::owners::get_owner))
                .route(delete().to(threads::owners::erase_owner))
                .route(head().to(threads::owners::get_owner))
                .default_service(not_allowed_for_back_end("GET, HEAD, DELETE")),
        )
        .service(
            web::resource("/v1/webhooks")
                .route(get().to(admin::webhooks::list_webhooks))
                .route(post().to(admin::webhooks::create_webhook))
                .route(head().to(admin::webhooks::list_webhooks))
                .default_service(not_allowed_for_back_end("GET, HEAD, POST")),
        )
        .service(
            web::resource("/v1/webhooks/{id}")
                .route(get().to(admin::webhooks::get_webhook))
                .route(patch().to(admin::webhooks::patch_webhook))
                .route(delete().to(admin::webhooks::delete_webhook))
                .route(head().to(admin::webhooks::get_webhook))
                .default_service(not_allowed_for_back_end("GET, HEAD, PATCH, DELETE")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/pending")
                .route(get().to(admin::webhooks::get_pending))
                .route(head().to(admin::webhooks::get_pending))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/failed")
                .route(get().to(admin::webhooks::get_failed))
                .route(head().to(admin::webhooks::get_failed))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/webhooks/{id}/replay")
                .route(post().to(admin::webhooks::replay_webhook))
                .default_service(not_allowed_for_back_end("POST")),
        )
        .service(
            web::resource("/v1/api-keys/current")
                .route(get().to(admin::api_keys::get_api_key))
                .route(head().to(admin::api_keys::get_api_key))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/settings")
                .route(get().to(admin::settings::get_settings))
                .route(head().to(admin::settings::get_settings))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/stats")
                .route(get().to(admin::stats::get_stats))
                .route(head().to(admin::stats::get_stats))
                .default_service(not_allowed_for_back_end("GET, HEAD")),
        )
        .service(
            web::resource("/v1/mcp-urls")
                .route(post().to(tools::mcp_urls::create_mcp_url))
                .default_service(not_allowed_for_back_end("POST")),
        );
}
