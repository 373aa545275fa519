//! How much of a body is kept, by the head of the request: nothing when that alone is refused.

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::{HttpRequest, web};

use super::body::Body;
use crate::http::Api;
use crate::identity::THREAD_ID;

/// What is read without a look at who sends it: that look costs as much as to keep so little.
const SMALL_BYTES: u64 = 16_384;

/// Paths that are for back ends alone.
const FOR_BACK_ENDS: [&str; 5] = [
    "/v1/kv",
    "/v1/webhooks",
    "/v1/mcp-urls",
    "/v1/archives",
    "/v1/events",
];

/// What the body of a request to the API may have. That of an entry is a setting.
pub(crate) fn limit_bytes(request: &ServiceRequest) -> u64 {
    let path = request.match_info().as_str();
    match request.app_data::<web::Data<Api>>() {
        Some(api) if is_hopeless(api, request, path) => 0,
        Some(api) if is_entry(path) => api.namespaces.policy().max_bytes,
        _ => Body::LIMIT_BYTES,
    }
}

/// Whether a request with a large body will be refused whatever is in it, as its credentials are
/// missing or wrong. What it gets is for the handlers to say: this only tells that they look no
/// further.
fn is_hopeless(api: &Api, request: &ServiceRequest, path: &str) -> bool {
    let is_untold = request.headers().contains_key(TRANSFER_ENCODING);
    if !is_untold && announced_bytes(request).unwrap_or_default() <= SMALL_BYTES {
        return false;
    }
    if is_for_back_ends(path) {
        return api.api_keys.verify(request.headers()).is_none();
    }
    match path.strip_prefix("/v1/threads/") {
        Some(rest) => is_nobodys(api, request.request(), rest),
        None => false,
    }
}

fn is_for_back_ends(path: &str) -> bool {
    FOR_BACK_ENDS.into_iter().any(|root| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether it is the path of an entry, whose body is kept as it comes.
fn is_entry(path: &str) -> bool {
    let below = path.strip_prefix("/v1/kv/");
    below.is_some_and(|below| below.contains('/'))
}

/// Whether a request below `/v1/threads/` cannot be for the thread that it names.
fn is_nobodys(api: &Api, request: &HttpRequest, rest: &str) -> bool {
    let (id, _) = rest.split_once('/').unwrap_or((rest, ""));
    if id == "current" {
        // without either it may be anybody's, also a new one
        let has_to_show = request.headers().contains_key(THREAD_ID) || api.identity.has_provider();
        return has_to_show && api.identity.identify(request).is_err();
    }
    let is_own = |id: &str| {
        let caller = api.identity.proven_caller(request);
        caller.is_some_and(|caller| caller.id.as_str() == id)
    };
    api.api_keys.verify(request.headers()).is_none() && !is_own(id)
}

/// How long a body is to be, as its head says; none: nobody knows, or there is none.
pub(super) fn announced_bytes(request: &ServiceRequest) -> Option<u64> {
    let length = request.headers().get(CONTENT_LENGTH)?;
    length.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::http::openapi_json;

    fn paths() -> Map<String, Value> {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        document["paths"].as_object().unwrap().clone()
    }

    #[test]
    fn a_body_has_the_limit_of_entries_if_it_is_kept_as_it_comes() {
        let takes_bytes = |operation: &Value| {
            let content = &operation["requestBody"]["content"];
            content.get("application/octet-stream").is_some()
        };
        for (path, operations) in paths() {
            let mut operations = operations.as_object().unwrap().values();
            assert_eq!(is_entry(&path), operations.any(takes_bytes), "{path}");
        }
    }

    #[test]
    fn a_path_is_listed_if_it_is_for_back_ends_alone() {
        let paths = paths();

        for (path, operations) in &paths {
            let mut operations = operations.as_object().unwrap().values();
            let wants_key = |operation: &Value| operation["security"] == json!([{"api_key": []}]);
            assert_eq!(is_for_back_ends(path), operations.all(wants_key), "{path}");
        }
        for root in FOR_BACK_ENDS {
            assert!(paths.contains_key(root) || paths.contains_key(&format!("{root}/{{id}}")));
        }
    }
}
