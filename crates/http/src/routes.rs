use actix_web::Route;
use actix_web::http::Method;

use super::methods::on;
use super::{admin, events, kv, scopes, threads, tools};

pub(super) struct Path {
    pub(super) path: &'static str,
    pub(super) routes: fn() -> Vec<Route>,
    /// Methods for the `Allow` header of a 405.
    pub(super) allow: &'static str,
}

/// Defines tables of paths, and the list of operations in the OpenAPI document. Every path with GET also has HEAD, with
/// the same handler unless `=>` names a different handler. An operation in parentheses is documented at a different
/// path.
macro_rules! paths {
    ($(
        $(#[$attribute:meta])*
        static $table:ident: $(
            $path:literal {
                $($method:ident $($($handler:ident)::+)? $(($($other:ident)::+))? $(=> $($head:ident)::+)?),+ $(,)?
            }
        )+
    )+) => {
        $(
            $(#[$attribute])*
            pub(super) static $table: &[Path] = &[$(Path {
                path: $path,
                routes: || {
                    [$(routes!($method $($($handler)::+)? $($($other)::+)? $(=> $($head)::+)?)),+].into_iter().flatten().collect()
                },
                allow: allow!($($method)+),
            }),+];
        )+

        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($($($($($handler)::+,)?)+)+)+))]
        pub(super) struct Operations;

        impl utoipa::Modify for Operations {
            fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
                document.merge(<Self as utoipa::OpenApi>::openapi());
            }
        }
    };
}

macro_rules! routes {
    (GET $handler:path) => {
        routes!(GET $handler => $handler)
    };
    (GET $handler:path => $head:path) => {
        vec![on(Method::GET).to($handler), on(Method::HEAD).to($head)]
    };
    ($method:ident $handler:path) => {
        vec![on(Method::$method).to($handler)]
    };
}

macro_rules! allow {
    (GET $($rest:ident)*) => {
        concat!("GET, HEAD" $(, ", ", stringify!($rest))*)
    };
    ($first:ident $($rest:ident)*) => {
        concat!(stringify!($first) $(, ", ", stringify!($rest))*)
    };
}

paths! {
    /// Paths that must come before the paths of a thread. Otherwise, the router would take `import` for a thread id.
    static COLLECTION_PATHS:
        "/v1/threads/import" { POST threads::images::import_thread }
        "/v1/threads" { GET threads::lists::list_threads, POST threads::lifecycle::create_thread }

    /// Paths below a thread. The most frequently used paths come first, because the router tries paths in order.
    static THREAD_PATHS:
        "/state" {
            GET threads::state::get_state,
            PUT threads::writes::put_state,
            PATCH threads::writes::patch_state,
            DELETE threads::writes::delete_state,
        }
        "/state/{key:[^/]*}/push" { POST threads::writes::push_value }
        "/state/{key:[^/]*}" {
            GET threads::state::get_value,
            PUT threads::writes::put_value,
            DELETE threads::writes::delete_value,
        }
        "/state/{key:[^/]*}/increment" { POST threads::writes::increment_value }
        "/keys" { GET threads::state::get_keys }
        "/history" {
            GET threads::history::get_history,
            POST threads::history::append_history,
            DELETE threads::history_removal::delete_history,
        }
        // must come before the path of an item, because an item may have the id `take`, `compact` or `segments`
        "/history/take" {
            POST threads::history_removal::take_history,
            DELETE (threads::history_removal::delete_history_item),
        }
        "/history/compact" {
            POST threads::compaction::compact_history,
            DELETE (threads::history_removal::delete_history_item),
        }
        "/history/segments" {
            GET threads::compaction::list_segments,
            DELETE (threads::history_removal::delete_history_item),
        }
        "/history/segments/{n:[^/]*}" { GET threads::compaction::get_segment }
        "/history/{item:[^/]*}" { DELETE threads::history_removal::delete_history_item }
        "/turn" {
            GET threads::turns::get_turn,
            POST threads::turns::take_turn,
            PATCH threads::turns::renew_turn,
            DELETE threads::turns::end_turn,
        }
        "/effects" { GET threads::effects::list_effects }
        "/effects/{effect:[^/]*}" {
            GET threads::effects::get_effect,
            POST threads::effects::begin_effect,
            PUT threads::effects::settle_effect,
        }
        "/checkpoints" {
            GET threads::checkpoints::list_checkpoints,
            POST threads::checkpoints::save_checkpoint,
        }
        "/checkpoints/{n:[^/]*}/restore" { POST threads::checkpoints::restore_checkpoint }
        "/checkpoints/{n:[^/]*}" {
            GET threads::checkpoints::get_checkpoint,
            DELETE threads::checkpoints::delete_checkpoint,
        }
        "/rotate" { POST threads::rotation::rotate_thread }
        "/fork" { POST threads::images::fork_thread }
        "/export" { GET threads::images::export_thread }
        "/events" { GET events::of_thread::get_thread_events => events::of_thread::head_thread_events }
        "" {
            GET threads::lifecycle::get_thread,
            PATCH threads::lifecycle::patch_thread,
            DELETE threads::lifecycle::delete_thread,
        }

    static OTHER_PATHS:
        // must come before the path of an entry, because an entry may have the key `get` or `put`
        "/v1/kv/{namespace:[^/]*}/get" {
            GET (kv::entries::get_entry),
            POST kv::batches::get_entries,
            PUT (kv::entries::put_entry),
            DELETE (kv::entries::delete_entry),
        }
        "/v1/kv/{namespace:[^/]*}/put" {
            GET (kv::entries::get_entry),
            POST kv::batches::put_entries,
            PUT (kv::entries::put_entry),
            DELETE (kv::entries::delete_entry),
        }
        "/v1/kv/{namespace:[^/]*}/{key:[^/]*}" {
            GET kv::entries::get_entry,
            PUT kv::entries::put_entry,
            DELETE kv::entries::delete_entry,
        }
        "/v1/kv/{namespace:[^/]*}" {
            GET kv::namespaces::list_entries,
            PUT kv::namespaces::put_namespace,
            DELETE kv::namespaces::delete_namespace,
        }
        "/v1/kv" { GET kv::namespaces::list_namespaces }
        "/v1/events" { GET events::all::get_events => events::all::head_events }
        "/v1/export" { GET threads::exports::export_threads => threads::exports::head_export }
        "/v1/archives" { GET threads::archives::list_archives }
        "/v1/archives/{id}" { GET threads::archives::get_archive }
        "/v1/archives/{id}/restore" { POST threads::archives::restore_archive }
        "/v1/archives/{id}/history" { GET threads::history::get_final_history }
        "/v1/owners/{owner}" { GET threads::owners::get_owner, DELETE threads::owners::erase_owner }
        "/v1/webhooks" { GET admin::webhooks::list_webhooks, POST admin::webhooks::create_webhook }
        "/v1/webhooks/{id}" {
            GET admin::webhooks::get_webhook,
            PATCH admin::webhooks::patch_webhook,
            DELETE admin::webhooks::delete_webhook,
        }
        "/v1/webhooks/{id}/pending" { GET admin::webhooks::get_pending }
        "/v1/webhooks/{id}/failed" { GET admin::webhooks::get_failed }
        "/v1/webhooks/{id}/replay" { POST admin::webhooks::replay_webhook }
        "/v1/api-keys/current" { GET admin::api_keys::get_api_key }
        "/v1/settings" { GET admin::settings::get_settings }
        "/v1/stats" { GET admin::stats::get_stats }
        "/v1/mcp-urls" { POST tools::mcp_urls::create_mcp_url }
        // POST instead of GET, because the body names the scope
        "/v1/scopes/keys/get" { POST scopes::values::get_values }
        "/v1/scopes/keys/set" { POST scopes::values::set_values }
        "/v1/scopes/keys/delete" { POST scopes::values::delete_key }
        "/v1/scopes/keys/list" { POST scopes::values::list_keys }
        "/v1/scopes/keys/increment" { POST scopes::values::increment_key }
        "/v1/scopes/tasks/get" { POST scopes::tasks::get_tasks }
        "/v1/scopes/tasks/set" { POST scopes::tasks::set_tasks }
        "/v1/scopes/tasks/update" { POST scopes::tasks::update_task }
        "/v1/scopes/describe" { POST scopes::lifecycle::describe_scope }
        "/v1/scopes/clear" { POST scopes::lifecycle::clear_scope }
        "/v1/tools/{name}" { POST tools::single::call_tool }
        "/v1/tool-calls" { POST tools::calls::call_tools }
        "/v1/tools" { GET tools::single::list_tools }
        "/v1/scopes" { DELETE scopes::lifecycle::end_scope }
        "/healthz" { GET admin::probes::healthz }
        "/readyz" { GET admin::probes::readyz }
}
