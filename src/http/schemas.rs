//! The shapes of bodies and answers, for the OpenAPI document. What they describe is read and
//! written elsewhere, since values are opaque text there.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{Content, Ref, RefOr};
use utoipa::{IntoParams, IntoResponses, ToSchema};

/// What was written.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct Receipt {
    /// The thread's version afterwards.
    version: u64,
    /// Bytes of the compact serialized state afterwards.
    size_bytes: u64,
    /// Of a delete: whether there was such a key.
    deleted: Option<bool>,
    /// Of a push: elements of the array afterwards.
    length: Option<u64>,
    /// Of an increment: the sum.
    value: Option<i64>,
}

/// What a merge has written.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct MergeReceipt {
    /// The thread's version afterwards.
    version: u64,
    /// Bytes of the compact serialized state afterwards.
    size_bytes: u64,
    /// What each operation answered, in order; absent for a merge patch.
    results: Option<Vec<OperationResult>>,
}

/// What an operation answered; of set and clear nothing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct OperationResult {
    deleted: Option<bool>,
    length: Option<u64>,
    value: Option<i64>,
}

/// The process is up.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    pub(super) status: &'static str,
}

/// A problem (RFC 9457). `code` is stable and is the thing to match on; some codes come with more
/// members, such as `limit_bytes` or `operation`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct Problem {
    r#type: String,
    title: String,
    status: u16,
    code: String,
    detail: String,
    request_id: String,
}

#[derive(IntoParams)]
#[expect(dead_code, reason = "its shape alone is used")]
#[into_params(parameter_in = Path)]
pub(super) struct KeyParam {
    /// 1 to 256 bytes of UTF-8 without control characters, percent-encoded.
    #[param(min_length = 1, max_length = 256)]
    key: String,
}

#[derive(IntoParams)]
#[expect(dead_code, reason = "its shape alone is used")]
#[into_params(parameter_in = Header)]
pub(super) struct WriteHeaders {
    /// A whole tag, a version in quotes (`"0"`: it must not exist), or `*`: it must exist.
    #[param(rename = "If-Match", pattern = r#"^(\*|"[0-9]+(-[0-9a-f]{16})?")$"#)]
    if_match: Option<String>,
    /// A repeat with the same body gets the first answer and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

/// What may come back from any read.
pub(super) struct ReadProblems;

/// What may come back from any write.
pub(super) struct WriteProblems;

/// What may come back in place of a stream.
pub(super) struct StreamProblems;

/// What may come back from the archive.
pub(super) struct ArchiveProblems;

/// What may come back from any path of entries and namespaces.
pub(super) struct EntryProblems;

/// What may come back from any path of webhooks.
pub(super) struct WebhookProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            ("400", "A parameter, header or id is malformed or unknown."),
            (
                "401",
                "The thread id is not signed by this service, or an api key is missing.",
            ),
            ("406", "The client does not take JSON."),
            ("412", "The thread has another version."),
            ("503", "The store is not available."),
        ])
    }
}

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, header, id or the body is malformed or unknown.",
            ),
            (
                "401",
                "The thread id is not signed by this service, or an api key is missing.",
            ),
            (
                "403",
                "A cross-site cookie came from an origin that is not allowed.",
            ),
            ("406", "The client does not take JSON."),
            ("409", "The value is of another kind, or the thread exists."),
            ("410", "The thread was destroyed."),
            ("412", "The thread has another version."),
            ("413", "A limit would be passed; nothing was changed."),
            ("415", "The body is of another type."),
            (
                "422",
                "The idempotency key came with another request before.",
            ),
            (
                "429",
                "There are too many writes, or new threads, or idempotency keys for now.",
            ),
            (
                "503",
                "The store is not available, or full; an idempotency key makes a retry safe.",
            ),
        ])
    }
}

impl IntoResponses for StreamProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, header, id or the cursor is malformed or unknown.",
            ),
            (
                "401",
                "The thread id is not signed by this service, or an api key is missing.",
            ),
            ("406", "The client does not take server-sent events."),
            ("503", "The store is not available."),
        ])
    }
}

impl IntoResponses for ArchiveProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, the id or the cursor is malformed or unknown.",
            ),
            ("401", "An api key is missing."),
            ("406", "The client does not take JSON."),
            ("503", "The store is not available."),
        ])
    }
}

impl IntoResponses for WebhookProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, the cursor or the body is malformed or unknown.",
            ),
            ("401", "An api key is missing."),
            ("406", "The client does not take JSON."),
            ("503", "The store is not available."),
        ])
    }
}

impl IntoResponses for EntryProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, a header, the namespace, the key, the cursor or the body is malformed or unknown.",
            ),
            ("401", "An api key is missing."),
            ("503", "The store is not available."),
        ])
    }
}

/// Problems by status, with what they say.
pub(super) fn problems(rows: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let problem = |description: &str| {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content);
        RefOr::T(response.build())
    };
    rows.iter()
        .map(|(status, description)| ((*status).to_owned(), problem(description)))
        .collect()
}
