use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{
    BodyFault, RawJson, ThreadTtl, Whole, optional_body_object, read, read_value,
};
use threadkeep_domain::{EntryKey, Lifetime, rfc3339};
use threadkeep_service::NamespaceView;
use threadkeep_store::{Entry, EntryHead, NamespaceChange, Put};

/// The receipt of a put.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryReceipt {
    /// The version of the entry. Starts at 1 and increases by 1 with each put.
    version: u64,
    /// Size of the body in bytes.
    size_bytes: u64,
    /// When the entry expires. Null if it never expires.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// The receipt of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryDeletion {
    /// True if the entry existed.
    pub(crate) deleted: bool,
}

/// An entry. `etag`, `content_encoding`, `body` and `base64` are present only if the request asks for bodies.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryObject {
    key: String,
    /// Size of the body in bytes.
    size_bytes: u64,
    content_type: String,
    /// When the entry was last put.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// When the entry expires. Null if it never expires.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// The entity tag, for `If-Match`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The content encoding of the body, if any.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<String>,
    /// The body, if it is UTF-8.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The body in base64, if it is not UTF-8.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// A page of entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryList {
    /// The entries, in byte order of their keys. A page may contain fewer than `limit` entries.
    pub(crate) entries: Vec<EntryObject>,
    /// The cursor of the next page. Null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// A namespace, with the number and size of its entries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceObject {
    namespace: String,
    /// Lifetime in seconds of entries that are put without `ttl_seconds`. 0 means that they never expire. Null means
    /// that the server's setting applies.
    default_ttl_seconds: Option<u64>,
    /// The namespace ends if it is not used for this number of seconds. Null if the namespace never ends by itself.
    idle_ttl_seconds: Option<u64>,
    /// When the namespace ends if it is not used. Null if it never ends. Each use updates this time within two seconds.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// When an entry was last put. Null if the namespace has no entries.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
    /// Number of entries.
    entries: u64,
    /// Size of all bodies in bytes.
    size_bytes: u64,
}

/// A page of namespaces.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceList {
    /// The namespaces, newest first.
    pub(crate) namespaces: Vec<NamespaceObject>,
    /// The cursor of the next page. Null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// The receipt of a namespace deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamespaceDeletion {
    /// Number of deleted entries.
    pub(crate) deleted: u64,
}

/// The settings of a namespace.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamespaceBody<'a> {
    /// Lifetime in seconds of entries that are put without `ttl_seconds`. 0 means that they never expire. If null or
    /// absent, the server's setting applies.
    #[schema(value_type = Option<u64>, maximum = 31_536_000)]
    #[serde(borrow)]
    default_ttl_seconds: Option<RawJson<'a>>,
    /// The namespace ends if none of its entries is read, listed, put or deleted for this number of seconds. If null or
    /// absent, the namespace never ends by itself.
    #[schema(value_type = Option<u64>, minimum = 60, maximum = 946_080_000)]
    #[serde(borrow)]
    idle_ttl_seconds: Option<RawJson<'a>>,
}

pub(super) fn read_settings(body: &str) -> ApiResult<NamespaceChange> {
    let body = optional_body_object(body, 1)?;
    let body: NamespaceBody<'_> = read(&body)?;
    let default = setting::<Whole<0, { Lifetime::LONGEST.as_secs() }>>(
        body.default_ttl_seconds,
        "default_ttl_seconds",
    )?;
    let idle = setting::<ThreadTtl>(body.idle_ttl_seconds, "idle_ttl_seconds")?;
    Ok(NamespaceChange {
        default_lifetime: Some(default.map(|Whole(seconds)| Lifetime::from_seconds(seconds))),
        idle_ttl: Some(idle.map(Whole::as_duration)),
    })
}

fn setting<'a, T: Deserialize<'a>>(json: Option<RawJson<'a>>, name: &str) -> ApiResult<Option<T>> {
    let json = json.filter(|json| json.0 != "null");
    let value = json.map(|RawJson(json)| read_value(json)).transpose();
    value.map_err(|fault: BodyFault| fault.in_member(name).into())
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
            etag: None,
            content_encoding: None,
            body: None,
            base64: None,
        }
    }

    pub(crate) fn with_body(key: &EntryKey, entry: &Entry) -> Self {
        let (head, text) = (&entry.head, str::from_utf8(&entry.body));
        let encoding = head.content_encoding.as_ref();
        Self {
            etag: Some(format!("\"{}\"", head.stamp)),
            content_encoding: encoding.map(|encoding| encoding.as_str().into()),
            body: text.ok().map(str::to_owned),
            base64: text.is_err().then(|| STANDARD.encode(&entry.body)),
            ..Self::of(key, head)
        }
    }

    pub(crate) fn json_size(key: &EntryKey, entry: &Entry) -> u64 {
        let body_bytes = match str::from_utf8(&entry.body) {
            Ok(text) => json_bytes(text),
            Err(_) => entry.body.len().div_ceil(3) * 4,
        };
        (MEMBERS_BYTES + json_bytes(key.as_str()) + body_bytes) as u64
    }
}

/// Approximate size of an entry's JSON object in bytes, without the key or body.
const MEMBERS_BYTES: usize = 256;

fn json_bytes(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    });
    bytes.sum()
}

impl NamespaceObject {
    pub(crate) fn of(view: &NamespaceView) -> Self {
        let NamespaceView { record, usage } = view;
        Self {
            namespace: record.namespace.as_str().into(),
            default_ttl_seconds: record.default_lifetime.map(Lifetime::as_seconds),
            idle_ttl_seconds: record.idle.map(|idle| idle.ttl.as_secs()),
            expires_at: record.idle.and_then(|idle| rfc3339(idle.ends_ms)),
            created_at: rfc3339(record.created_ms),
            last_used_at: usage.last_used_ms.and_then(rfc3339),
            entries: usage.entries,
            size_bytes: usage.bytes,
        }
    }
}
