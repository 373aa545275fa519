//! Entries and namespaces as they are told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{EntryKey, Lifetime, rfc3339};
use crate::http::request::json::{
    BodyFault, RawJson, Whole, optional_body_object, read, read_value,
};
use crate::service::NamespaceView;
use crate::store::{EntryHead, Put};
use crate::web::ApiError;

/// What was put.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryReceipt {
    /// 1 for a new entry, +1 for each put.
    version: u64,
    /// Of the body.
    size_bytes: u64,
    /// When the entry ends; null: never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryDeletion {
    /// Whether there was such an entry.
    pub(crate) deleted: bool,
}

/// An entry, but for its body.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryObject {
    key: String,
    /// Of the body.
    size_bytes: u64,
    content_type: String,
    /// When it was last put.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// When it ends; null: never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A part of the list of entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryList {
    /// By the bytes of their keys; perhaps fewer than were asked for.
    pub(crate) keys: Vec<EntryObject>,
    /// Where to go on; null: there are no more.
    pub(crate) next_cursor: Option<String>,
}

/// A namespace and what is in it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceObject {
    namespace: String,
    /// How long entries live that are put without a time; 0: for ever, null: as the server's
    /// settings say.
    default_ttl_seconds: Option<u64>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// When one of its entries was last put; null without entries.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
    /// How many there are.
    entries: u64,
    /// Of all their bodies.
    size_bytes: u64,
}

/// A part of the list of namespaces.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceList {
    /// The newest first.
    pub(crate) namespaces: Vec<NamespaceObject>,
    /// Where to go on; null: there are no more.
    pub(crate) next_cursor: Option<String>,
}

/// What was deleted of a namespace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceDeletion {
    /// How many entries.
    pub(crate) deleted: u64,
}

/// What a namespace is to be like.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamespaceBody<'a> {
    /// How long entries live that are put without a time; 0: for ever. Null or absent: as the
    /// server's settings say.
    #[schema(value_type = Option<u64>, maximum = 31_536_000)]
    #[serde(borrow)]
    default_ttl_seconds: Option<RawJson<'a>>,
}

/// Reads the body of `PUT /v1/kv/{namespace}`.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_default(body: &str) -> Result<Option<Lifetime>, ApiError> {
    let body = optional_body_object(body, 1)?;
    let body: NamespaceBody<'_> = read(&body)?;
    let seconds = body.default_ttl_seconds.filter(|json| json.0 != "null");
    let lifetime = seconds.map(|RawJson(json)| {
        let seconds = read_value::<Whole<0, { Lifetime::LONGEST.as_secs() }>>(json);
        seconds.map(|Whole(seconds)| Lifetime::from_seconds(seconds))
    });
    let fault = |fault: BodyFault| fault.in_member("default_ttl_seconds").into();
    lifetime.transpose().map_err(fault)
}

impl EntryReceipt {
    pub(crate) fn of(put: &Put, size_bytes: usize) -> Self {
        Self {
            version: put.stamp.version,
            size_bytes: size_bytes as u64,
            expires_at: put.expires_ms.and_then(rfc3339),
        }
    }
}

impl EntryObject {
    pub(crate) fn of(key: &EntryKey, head: &EntryHead) -> Self {
        Self {
            key: key.as_str().into(),
            size_bytes: head.size_bytes,
            content_type: head.content_type.as_str().into(),
            updated_at: rfc3339(head.updated_ms),
            expires_at: head.expires_ms.and_then(rfc3339),
        }
    }
}

impl NamespaceObject {
    pub(crate) fn of(view: &NamespaceView) -> Self {
        let NamespaceView { record, usage } = view;
        Self {
            namespace: record.namespace.as_str().into(),
            default_ttl_seconds: record.default_lifetime.map(Lifetime::as_seconds),
            created_at: rfc3339(record.created_ms),
            last_used_at: usage.last_used_ms.and_then(rfc3339),
            entries: usage.entries,
            size_bytes: usage.bytes,
        }
    }
}
