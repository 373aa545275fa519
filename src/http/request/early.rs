//! Bodies of those who are refused by their head alone: nothing of them is kept.

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::{HttpRequest, web};

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

/// Whether a request with a large body will be refused whatever is in it, as its credentials are
/// missing or wrong. What it gets is for the handlers to say: this only tells that they look no
/// further.
pub(crate) fn is_hopeless(request: &ServiceRequest) -> bool {
    let is_untold = request.headers().contains_key(TRANSFER_ENCODING);
    if !is_untold && announced_bytes(request).unwrap_or_default() <= SMALL_BYTES {
        return false;
    }
    let Some(api) = request.app_data::<web::Data<Api>>() else {
        return false;
    };
    let path = request.match_info().as_str();
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

    #[test]
    fn a_path_is_listed_if_it_is_for_back_ends_alone() {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        let paths: &Map<_, _> = document["paths"].as_object().unwrap();

        for (path, operations) in paths {
            let mut operations = operations.as_object().unwrap().values();
            let wants_key = |operation: &Value| operation["security"] == json!([{"api_key": []}]);
            assert_eq!(is_for_back_ends(path), operations.all(wants_key), "{path}");
        }
        for root in FOR_BACK_ENDS {
            assert!(paths.contains_key(root) || paths.contains_key(&format!("{root}/{{id}}")));
        }
    }
}
