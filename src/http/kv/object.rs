//! Bodies and answers about entries and namespaces.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{EntryKey, Lifetime, rfc3339};
use crate::http::request::json::{
    BodyFault, RawJson, Whole, optional_body_object, read, read_value,
};
use crate::service::NamespaceView;
use crate::store::{EntryHead, Put};
use crate::web::ApiError;

/// The receipt of a put.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryReceipt {
    /// 1 for a new entry, and 1 more with each put.
    version: u64,
    /// Bytes of the body.
    size_bytes: u64,
    /// When the entry expires; null if never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// The receipt of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryDeletion {
    /// Whether the entry existed.
    pub(crate) deleted: bool,
}

/// An entry without its body.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryObject {
    key: String,
    /// Bytes of the body.
    size_bytes: u64,
    content_type: String,
    /// When it was last put.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// When it expires; null if never.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A page of entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryList {
    /// In the order of the bytes of their keys. A page may be shorter than `limit`.
    pub(crate) keys: Vec<EntryObject>,
    /// The cursor of the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// A namespace, with the number and size of its entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceObject {
    namespace: String,
    /// Lifetime of entries that are put without one; 0 keeps them for ever, null means that of the server's settings.
    default_ttl_seconds: Option<u64>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// When an entry was last put; null without entries.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
    /// Number of entries.
    entries: u64,
    /// Bytes of all their bodies.
    size_bytes: u64,
}

/// A page of namespaces.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceList {
    /// Newest first.
    pub(crate) namespaces: Vec<NamespaceObject>,
    /// The cursor of the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// The receipt of the deletion of a namespace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceDeletion {
    /// Number of deleted entries.
    pub(crate) deleted: u64,
}

/// The settings of a namespace.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamespaceBody<'a> {
    /// Lifetime of entries that are put without one; 0 keeps them for ever, null or absent means that of the server's
    /// settings.
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
