//! Decides from the head of a request how much of the body to read. If the head alone is enough to reject the request,
//! no body is read.

use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::TRANSFER_ENCODING;
use actix_web::{HttpRequest, web};

use super::back_end::key_for;
use super::body::{Body, announced_bytes};
use super::context::change_context;
use super::decode::path_part;
use super::rights::{IMPORT, is_for_back_ends};
use super::target::caller;
use crate::Api;
use threadkeep_domain::effects::{EFFECTS_MAX, RESULTS_BYTES_MAX};
use threadkeep_domain::{CHECKPOINTS_MAX_BYTES, METADATA_MAX_BYTES};

/// Bodies up to this size are read before the sender is checked, because the check costs as much as storing the body.
const SMALL_BYTES: u64 = 16_384;

/// Index of the path part that contains the thread's id in `/v1/threads/{id}`. Part 0 is empty.
const THREAD_INDEX: usize = 3;

pub(crate) fn limit_bytes(request: &ServiceRequest) -> u64 {
    let path = request.match_info().as_str();
    match request.app_data::<web::Data<Api>>() {
        Some(api) if will_be_refused(api, request, path) => 0,
        Some(api) if is_entry(request.method(), path) => api.namespaces.policy().max_bytes,
        Some(api) if path == IMPORT => import_limit_bytes(api),
        _ => Body::LIMIT_BYTES,
    }
}

/// Returns whether a request with a large body will be rejected because its credentials are missing or wrong. If so,
/// the body is not read, and the handler creates the error response.
fn will_be_refused(api: &Api, request: &ServiceRequest, path: &str) -> bool {
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    if !is_chunked && announced_bytes(request).unwrap_or_default() <= SMALL_BYTES {
        return false;
    }
    if is_for_back_ends(path) {
        return key_for(request.request(), api).is_err();
    }
    path.starts_with("/v1/threads/") && lacks_credentials(api, request.request())
}

/// Returns the maximum size of a thread document, in bytes. The document contains state, metadata, checkpoints,
/// history, keys, tasks and effects.
///
/// A small history item takes up to twice as many bytes as count towards the history's limit. Keys and tasks take up to
/// 2 MiB, because JSON escapes characters in strings.
fn import_limit_bytes(api: &Api) -> u64 {
    const KEYS_AND_TASKS: u64 = 2 * 1_048_576;
    // each effect has up to 2 KiB besides its result
    const EFFECTS: u64 = 2 * RESULTS_BYTES_MAX + 2_048 * EFFECTS_MAX as u64;
    let (policy, scopes) = (api.service.policy(), api.images.scope_policies());
    let history = scopes.history.max_bytes.saturating_mul(2);
    let state = policy.max_bytes + 2 * METADATA_MAX_BYTES;
    history.saturating_add(state + CHECKPOINTS_MAX_BYTES + KEYS_AND_TASKS + EFFECTS)
}

/// Returns whether the body is the content of an entry, which is stored unchanged. Returns false for batches of
/// entries, which use POST and have JSON bodies.
fn is_entry(method: &Method, path: &str) -> bool {
    let below = path.strip_prefix("/v1/kv/");
    method != Method::POST && below.is_some_and(|below| below.contains('/'))
}

/// Returns whether the caller lacks access to the thread in the path. If the caller has access, stores the caller for
/// the handler.
fn lacks_credentials(api: &Api, request: &HttpRequest) -> bool {
    let Some(id) = path_part(request, THREAD_INDEX) else {
        return true;
    };
    let id = (id != "current").then_some(&*id);
    match caller(api, request, id) {
        Ok(caller) => {
            change_context(request, |context| context.caller = Some(caller));
            false
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::openapi_json;

    #[test]
    fn only_raw_bodies_have_the_size_limit_of_entries() {
        let takes_bytes = |operation: &Value| {
            let content = &operation["requestBody"]["content"];
            content.get("application/octet-stream").is_some()
        };
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let has_body = operation.get("requestBody").is_some();
                let method = method.to_uppercase().parse().unwrap();
                let is_raw = is_entry(&method, path) && has_body;
                assert_eq!(is_raw, takes_bytes(operation), "{method} {path}");
            }
        }
    }
}
