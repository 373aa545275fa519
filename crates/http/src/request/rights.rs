//! Defines which callers may use a path, and which right an API key needs for the path.

use actix_web::HttpRequest;
use actix_web::http::Method;

use super::body::is_endless;
use super::decode::path_part;
use threadkeep_domain::Namespace;
use threadkeep_identity::{ApiKey, Right};

/// A path prefix, the right to read below the prefix, and the right to write below it.
type Row = (&'static str, Right, Right);

/// Paths that require an API key. [`OWN_KEY`] and thread paths that end with [`EXPORT`] also require an API key.
static FOR_BACK_ENDS: [Row; 10] = [
    (IMPORT, Right::ThreadsRead, Right::Threads),
    ("/v1/export", Right::ThreadsRead, Right::Threads),
    ("/v1/archives", Right::ThreadsRead, Right::Threads),
    ("/v1/mcp-urls", Right::Scopes, Right::Scopes),
    ("/v1/kv", Right::Kv, Right::Kv),
    ("/v1/events", Right::Events, Right::Events),
    ("/v1/owners", Right::Owners, Right::Owners),
    ("/v1/webhooks", Right::Webhooks, Right::Webhooks),
    ("/v1/settings", Right::Admin, Right::Admin),
    ("/v1/stats", Right::Admin, Right::Admin),
];

/// Paths that callers without an API key may also use. The rows from `/v1/responses` onwards belong to other protocols.
static FOR_ALL: [Row; 18] = [
    ("/v1/threads", Right::ThreadsRead, Right::Threads),
    ("/v1/scopes", Right::Scopes, Right::Scopes),
    ("/v1/tools", Right::Scopes, Right::Scopes),
    ("/v1/tool-calls", Right::Scopes, Right::Scopes),
    ("/v1/responses", Right::ThreadsRead, Right::Threads),
    ("/v1/conversations", Right::ThreadsRead, Right::Threads),
    ("/v1/models", Right::ThreadsRead, Right::Threads),
    ("/mcp", Right::Scopes, Right::Scopes),
    ("/openai/v1", Right::ThreadsRead, Right::Threads),
    ("/api/threads", Right::ThreadsRead, Right::Threads),
    ("/api/v1", Right::Scopes, Right::Scopes),
    ("/state-handles", Right::Scopes, Right::Scopes),
    ("/sessions", Right::Scopes, Right::Scopes),
    ("/runs", Right::Scopes, Right::Scopes),
    ("/tool-calls", Right::Scopes, Right::Scopes),
    ("/responses", Right::Scopes, Right::Scopes),
    ("/kv", Right::Kv, Right::Kv),
    ("/thread/ws", Right::Threads, Right::Threads),
];

pub(super) const IMPORT: &str = "/v1/threads/import";
/// Path where callers retrieve their own API key. Does not require a right.
const OWN_KEY: &str = "/v1/api-keys/current";
const EXPORT: &str = "export";

/// Index of the path part that contains the namespace in `/v1/kv/{namespace}`.
const NAMESPACE_INDEX: usize = 3;

pub(crate) fn is_for_back_ends(path: &str) -> bool {
    let below_thread = path.strip_prefix("/v1/threads/");
    let part = below_thread.and_then(|below| below.split_once('/'));
    row(&FOR_BACK_ENDS, path).is_some()
        || is_below(OWN_KEY, path)
        || part.is_some_and(|(_, part)| part == EXPORT)
}

/// Returns the right that a call needs, if any, regardless of the namespace in the path.
pub(crate) fn right_for(method: &Method, path: &str) -> Option<&'static Right> {
    let (_, read, write) = row(&FOR_BACK_ENDS, path).or_else(|| row(&FOR_ALL, path))?;
    Some(if method.is_safe() { read } else { write })
}

fn row(table: &'static [Row], path: &str) -> Option<&'static Row> {
    table.iter().find(|(root, ..)| is_below(root, path))
}

pub(crate) fn is_below(root: &str, path: &str) -> bool {
    let rest = path.strip_prefix(root);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub fn missing(key: &ApiKey, method: &Method, path: &str) -> Option<Right> {
    let right = right_for(method, path)?;
    (!key.rights.cover(right)).then(|| right.clone())
}

/// Returns the right that a request needs. For a path with a namespace, returns the right to that namespace.
pub(super) fn needed_right(request: &HttpRequest) -> Option<Right> {
    let path = request.match_info().as_str();
    // a WebSocket counts as a write, because its messages may write
    let method = match is_endless(request.head()) {
        true => &Method::POST,
        false => request.method(),
    };
    let right = right_for(method, path)?;
    let namespace = || Namespace::new(&path_part(request, NAMESPACE_INDEX)?).ok();
    Some(match right {
        Right::Kv => namespace().map_or(Right::Kv, Right::KvOf),
        right => right.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::openapi_json;

    fn paths() -> Map<String, Value> {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        let mut paths = document["paths"].as_object().unwrap().clone();
        // other protocols have their own checks
        paths.retain(|_, item| {
            let mut operations = item.as_object().unwrap().values();
            operations.all(|operation| operation.get("externalDocs").is_none())
        });
        paths
    }

    #[test]
    fn a_state_key_may_be_named_export() {
        assert!(!is_for_back_ends("/v1/threads/current/state/export"));
    }

    #[test]
    fn exactly_the_paths_that_accept_only_an_api_key_are_listed() {
        let paths = paths();

        for (path, operations) in &paths {
            let mut operations = operations.as_object().unwrap().values();
            let wants_key = |operation: &Value| operation["security"] == json!([{"api_key": []}]);
            assert_eq!(is_for_back_ends(path), operations.all(wants_key), "{path}");
        }
        for (root, ..) in &FOR_BACK_ENDS {
            assert!(paths.keys().any(|path| path.starts_with(root)), "{root}");
        }
    }

    /// Lists the paths literally, because the OpenAPI document is generated from [`FOR_BACK_ENDS`] and repeats its
    /// mistakes.
    #[test]
    fn only_these_paths_require_an_api_key() {
        let paths = paths();
        let listed = paths.keys().filter(|path| is_for_back_ends(path));

        let expected = [
            "/v1/api-keys/current",
            "/v1/archives",
            "/v1/archives/{id}",
            "/v1/archives/{id}/history",
            "/v1/archives/{id}/restore",
            "/v1/events",
            "/v1/export",
            "/v1/kv",
            "/v1/kv/{namespace}",
            "/v1/kv/{namespace}/get",
            "/v1/kv/{namespace}/put",
            "/v1/kv/{namespace}/{key}",
            "/v1/mcp-urls",
            "/v1/owners/{owner}",
            "/v1/settings",
            "/v1/stats",
            "/v1/threads/current/export",
            "/v1/threads/import",
            "/v1/threads/{id}/export",
            "/v1/webhooks",
            "/v1/webhooks/{id}",
            "/v1/webhooks/{id}/failed",
            "/v1/webhooks/{id}/pending",
            "/v1/webhooks/{id}/replay",
        ];
        let mut listed: Vec<_> = listed.map(String::as_str).collect();
        listed.sort_unstable();
        assert_eq!(listed, expected);
    }

    #[test]
    fn an_operation_with_an_api_key_needs_a_right_unless_it_retrieves_the_key() {
        let paths = paths();
        let operations = paths.iter().flat_map(|(path, item)| {
            let operations = item.as_object().unwrap().values();
            operations.map(move |operation| (path, operation))
        });
        for (path, operation) in operations {
            let securities = operation["security"].as_array();
            let takes_key = securities.is_some_and(|securities| {
                securities.iter().any(|one| one.get("api_key").is_some())
            });
            let shows_key = path == "/v1/api-keys/current";
            let right = operation.get("x-right");
            assert_eq!(right.is_some(), takes_key && !shows_key, "{path}");
        }
    }
}
