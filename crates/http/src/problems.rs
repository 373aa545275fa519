//! Errors in the OpenAPI document: one response for each status, which operations refer to.

use std::collections::BTreeMap;

use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr};
use utoipa::{IntoResponses, Modify};

/// Status, name of the component, and the codes that come with the status.
const PROBLEMS: [(&str, &str, &str); 13] = [
    (
        "400",
        "BadRequest",
        "The request is malformed: `invalid_json`, `invalid_parameter`, `invalid_operation`, `invalid_key`, \
         `invalid_namespace`, `invalid_scope`, `invalid_thread_id`, `invalid_cursor`, `invalid_event_type` or \
         `invalid_webhook_url`. The detail names the part, and what is allowed.",
    ),
    (
        "401",
        "Unauthorized",
        "The signature of the thread id or token is wrong (`invalid_thread_signature`), the API key is unknown \
         (`invalid_api_key`), or the call needs an API key (`api_key_required`).",
    ),
    (
        "403",
        "Forbidden",
        "A cookie came from an origin that is not in `cors_origins` (`origin_not_allowed`), the API key lacks the right \
         that `x-right` names (`right_missing`, with `right`), or only callers with an API key may write that key \
         (`key_reserved`, with the index of the `operation`).",
    ),
    (
        "404",
        "NotFound",
        "`key_not_found`, `scope_not_found`, `task_not_found`, `tool_not_found`, or `not_found` for anything else.",
    ),
    (
        "406",
        "NotAcceptable",
        "`Accept` excludes the type of the answer (`not_acceptable`).",
    ),
    (
        "409",
        "Conflict",
        "The write does not fit what is stored: `not_an_array`, `not_an_integer`, `integer_overflow`, \
         `thread_exists`, `tasks_unfinished`, `scope_exists`, `scope_ended`, `webhook_configured`, \
         `too_many_webhooks`, `too_many_checkpoints`, `too_many_later_items`, `turn_taken` (with `expires_at`) or `turn_lost`. Nothing was changed.",
    ),
    (
        "410",
        "Gone",
        "The thread was destroyed, and its id is not used again (`thread_destroyed`).",
    ),
    (
        "412",
        "PreconditionFailed",
        "The version is another one than the condition names (`version_mismatch`, with `current_version`), or the items that \
         a compaction would replace have changed (`prefix_changed`, with `count`).",
    ),
    (
        "413",
        "ContentTooLarge",
        "A limit would be passed: `body_too_large`, `state_too_large`, `too_many_keys`, `metadata_too_large`, \
         `history_too_large`, `value_too_large`, `kv_too_large` or `tasks_too_large`. Nothing was changed.",
    ),
    (
        "415",
        "UnsupportedMediaType",
        "The body is of another type, or encoded (`unsupported_media_type`).",
    ),
    (
        "422",
        "UnprocessableContent",
        "The idempotency key was used for another request (`idempotency_key_reused`), the id of an item for another \
         value (`item_id_reused`), or there are too many namespaces (`too_many_namespaces`).",
    ),
    (
        "429",
        "TooManyRequests",
        "A rate limit, or too many idempotency keys (`rate_limited`). `Retry-After` says when to try again.",
    ),
    (
        "503",
        "ServiceUnavailable",
        "The store does not answer (`store_unavailable`) or is full (`store_full`), the server has no memory left for \
         the body or the answer (`overloaded`), is about to stop (`shutting_down`), or cannot verify tokens yet \
         (`identity_unavailable`). An idempotency key makes it safe to send a write again.",
    ),
];

/// Defines sets of statuses, for the attributes of handlers.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $($status:literal)+;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                references(&[$($status),+])
            }
        }
    )+};
}

problems! {
    /// Refusals of any read of a thread.
    ReadProblems = "400" "401" "403" "406" "412" "503";
    /// Refusals of any write to a thread.
    WriteProblems = "400" "401" "403" "406" "409" "410" "412" "413" "415" "422" "429" "503";
    /// Refusals of a stream.
    StreamProblems = "400" "401" "403" "406" "503";
    /// Refusals of any operation on a scope.
    ScopeProblems = "400" "401" "403" "404" "406" "409" "410" "412" "413" "415" "422" "429" "503";
    /// Refusals of any operation for back ends that answers with JSON.
    BackEndProblems = "400" "401" "403" "406" "503";
    /// Refusals of any operation for back ends that answers with another type.
    AnyAnswerProblems = "400" "401" "403" "503";
    /// Refusals of an import, besides those of its body and of any operation for back ends.
    ImportProblems = "409" "410" "422" "429";
    /// Refusals of a body.
    BodyProblems = "413" "415";
    /// Refusals of a request that needs no credential and no store.
    ToolProblems = "400" "406";
    /// Refusals of an operation for back ends that asks no store.
    McpUrlProblems = "400" "401" "403" "406" "413" "415";
    PreconditionFailed = "412";
    NotFound = "404";
    Conflict = "409";
    /// Refusals of a write for its idempotency key, which covers its body.
    RepeatProblems = "413" "422" "429";
    Unavailable = "503";
}

fn references(statuses: &[&str]) -> BTreeMap<String, RefOr<Response>> {
    PROBLEMS
        .into_iter()
        .filter(|(status, ..)| statuses.contains(status))
        .map(|(status, name, _)| (status.to_owned(), Ref::from_response_name(name).into()))
        .collect()
}

/// Adds the responses that the references name.
pub(super) struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Components::new);
        for (_, name, description) in PROBLEMS {
            let content = Content::new(Some(Ref::from_schema_name("Problem")));
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content);
            let response = RefOr::T(response.build());
            components.responses.insert(name.to_owned(), response);
        }
    }
}
