//! The one table from paths to the rights that API keys need for them.

use actix_web::HttpRequest;
use actix_web::http::Method;

use super::body::is_endless;
use super::decode::path_part;
use threadkeep_domain::Namespace;
use threadkeep_identity::{ApiKey, Right};

/// A path with everything below it, the right to read there, and the right to write.
type Row = (&'static str, Right, Right);

/// Calls that are not listed need no right. The last thirteen rows are other protocols.
static TABLE: [Row; 27] = [
    ("/v1/threads", Right::ThreadsRead, Right::Threads),
    ("/v1/export", Right::ThreadsRead, Right::Threads),
    ("/v1/archives", Right::ThreadsRead, Right::Threads),
    ("/v1/scopes", Right::Scopes, Right::Scopes),
    ("/v1/tools", Right::Scopes, Right::Scopes),
    ("/v1/tool-calls", Right::Scopes, Right::Scopes),
    ("/v1/mcp-urls", Right::Scopes, Right::Scopes),
    ("/v1/kv", Right::Kv, Right::Kv),
    ("/v1/events", Right::Events, Right::Events),
    ("/v1/owners", Right::Owners, Right::Owners),
    ("/v1/webhooks", Right::Webhooks, Right::Webhooks),
    ("/v1/settings", Right::Admin, Right::Admin),
    ("/v1/stats", Right::Admin, Right::Admin),
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

/// The part of `/v1/kv/{namespace}` that names the namespace.
const NAMESPACE_PLACE: usize = 3;

/// The right that a call of the path needs, whichever namespace it names.
pub(crate) fn right_for(method: &Method, path: &str) -> Option<&'static Right> {
    let is_below = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (_, read, write) = TABLE.iter().find(|(root, ..)| is_below(root))?;
    Some(if method.is_safe() { read } else { write })
}

/// The right that a key lacks for a call of the path, whichever namespace that names.
pub fn missing(key: &ApiKey, method: &Method, path: &str) -> Option<Right> {
    let right = right_for(method, path)?;
    (!key.rights.cover(right)).then(|| right.clone())
}

/// The right that a request needs. For entries of one namespace, that is the right to the namespace.
pub(super) fn needed(request: &HttpRequest) -> Option<Right> {
    let path = request.match_info().as_str();
    // the messages of a socket may write
    let method = match is_endless(request.head()) {
        true => &Method::POST,
        false => request.method(),
    };
    let right = right_for(method, path)?;
    let namespace = || Namespace::new(&path_part(request, NAMESPACE_PLACE)?).ok();
    Some(match right {
        Right::Kv => namespace().map_or(Right::Kv, Right::KvOf),
        right => right.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::openapi_json;

    #[test]
    fn an_operation_that_takes_a_key_needs_a_right_unless_it_shows_the_key() {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        let operations = document["paths"].as_object().unwrap().iter();
        let operations = operations.flat_map(|(path, item)| {
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
