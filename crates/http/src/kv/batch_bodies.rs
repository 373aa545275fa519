use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::object::EntryObject;
use crate::answer::ApiResult;
use crate::request::{List, Whole, invalid};
use threadkeep_domain::{ContentType, EntryKey, Lifetime, rfc3339};
use threadkeep_service::{BatchPut, EntryBodies, EntryDraft};
use threadkeep_store::Put;
use threadkeep_web::ApiError;

const ENTRIES_MAX: usize = 100;

/// The entries to read.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetEntries {
    /// The keys of the entries.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 100)]
    keys: List<String, 1, ENTRIES_MAX>,
}

/// The entries to put.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PutEntries {
    /// The entries. Each key may occur only once.
    #[schema(value_type = Vec<PutEntry>, min_items = 1, max_items = 100)]
    entries: List<PutEntry, 1, ENTRIES_MAX>,
}

/// An entry to put, with either `body` or `base64`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PutEntry {
    /// 1 to 1,024 bytes of UTF-8 without control characters.
    #[schema(min_length = 1)]
    key: String,
    /// The body as text, which is stored as UTF-8.
    #[schema(nullable = false)]
    body: Option<String>,
    /// The body in base64, with padding.
    #[schema(nullable = false)]
    base64: Option<String>,
    /// The media type. Defaults to `text/plain; charset=utf-8` with `body`, and `application/octet-stream` with
    /// `base64`.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    content_type: Option<String>,
    /// Lifetime of the entry in seconds. 0 means that the entry never expires. By default, the namespace's default
    /// lifetime applies, or the server's if the namespace does not have one.
    #[schema(nullable = false, value_type = Option<u64>, maximum = 31_536_000)]
    ttl_seconds: Option<Whole<0, { Lifetime::LONGEST.as_secs() }>>,
    /// Put the entry only if it does not exist.
    #[schema(nullable = false)]
    if_absent: Option<bool>,
}

/// The entries that were read.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntriesObject {
    /// The entries that exist, with their bodies, in the order of the request.
    entries: Vec<EntryObject>,
    /// The keys that do not exist.
    missing: Vec<String>,
    /// The keys that were not read because the response reached 2 MiB. Request them again.
    unread: Vec<String>,
}

/// The outcomes of a batch of puts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PutOutcomes {
    /// One outcome per entry, in the order of the request.
    entries: Vec<PutOutcome>,
}

/// The outcome of one put in a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum PutOutcome {
    /// The entry was put.
    Put {
        key: String,
        /// Always true.
        ok: bool,
        /// True if the entry is new.
        created: bool,
        /// The version of the entry. Starts at 1 and increases by 1 with each put.
        version: u64,
        /// Size of the body in bytes.
        size_bytes: u64,
        /// When the entry expires. Null if it never expires.
        #[schema(format = DateTime)]
        expires_at: Option<String>,
    },
    /// The entry was not put.
    Refused {
        key: String,
        /// Always false.
        ok: bool,
        /// The status that a single put would return.
        status: u16,
        code: &'static str,
        detail: String,
        /// The current version of the entry, if `code` is `version_mismatch`.
        #[schema(nullable = false)]
        #[serde(skip_serializing_if = "Option::is_none")]
        current_version: Option<u64>,
    },
}

impl GetEntries {
    pub(super) fn read(self) -> ApiResult<Vec<EntryKey>> {
        let mut seen = BTreeSet::new();
        let mut keys = Vec::with_capacity(self.keys.0.len());
        for text in self.keys.0 {
            let key = EntryKey::new(&text)?;
            if seen.insert(key.clone()) {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

impl PutEntries {
    pub(super) fn read(self) -> ApiResult<Vec<BatchPut>> {
        let mut keys = BTreeSet::new();
        let entries = self.entries.0.into_iter().enumerate();
        let puts = entries.map(|(index, entry)| {
            let put = entry.read(index)?;
            match keys.insert(put.key.clone()) {
                true => Ok(put),
                false => Err(invalid_entry(index, "key", "is given twice")),
            }
        });
        puts.collect()
    }
}

impl PutEntry {
    fn read(self, index: usize) -> ApiResult<BatchPut> {
        let (body, default_type) = match (self.body, self.base64) {
            (Some(text), None) => (text.into_bytes(), "text/plain; charset=utf-8"),
            (None, Some(text)) => {
                let bytes = STANDARD.decode(text);
                let bytes = bytes.map_err(|_| invalid_entry(index, "base64", "must be base64"))?;
                (bytes, "application/octet-stream")
            }
            _ => {
                let detail = format!("`entries[{index}]` must have either `body` or `base64`");
                return Err(invalid(detail));
            }
        };
        let content_type = self.content_type.as_deref().unwrap_or(default_type);
        Ok(BatchPut {
            key: EntryKey::new(&self.key)?,
            draft: EntryDraft {
                lifetime: self.ttl_seconds.map(|Whole(it)| Lifetime::from_seconds(it)),
                ..EntryDraft::new(ContentType::new(content_type)?, body)
            },
            if_absent: self.if_absent.unwrap_or_default(),
        })
    }
}

fn invalid_entry(index: usize, member: &str, why: &str) -> ApiError {
    invalid(format!("`entries[{index}].{member}` {why}"))
}

impl EntriesObject {
    pub(super) fn of(read: &EntryBodies) -> Self {
        let entries = read.entries.iter();
        let texts = |keys: &[EntryKey]| keys.iter().map(|key| key.as_str().into()).collect();
        Self {
            entries: entries
                .map(|(key, entry)| EntryObject::with_body(key, entry))
                .collect(),
            missing: texts(&read.missing),
            unread: texts(&read.unread),
        }
    }
}

impl PutOutcomes {
    pub(super) fn of(
        entries: impl Iterator<Item = (EntryKey, usize)>,
        puts: Vec<ApiResult<Put>>,
    ) -> Self {
        let outcomes = entries.zip(puts);
        Self {
            entries: outcomes
                .map(|((key, bytes), put)| PutOutcome::of(key.as_str().into(), bytes, put))
                .collect(),
        }
    }
}

impl PutOutcome {
    fn of(key: String, size_bytes: usize, put: ApiResult<Put>) -> Self {
        match put {
            Ok(put) => Self::Put {
                key,
                ok: true,
                created: put.stamp.version == 1,
                version: put.stamp.version,
                size_bytes: size_bytes as u64,
                expires_at: put.expires_ms.and_then(rfc3339),
            },
            Err(error) => {
                let problem = error.problem();
                Self::Refused {
                    key,
                    ok: false,
                    status: problem.status.as_u16(),
                    code: problem.code,
                    current_version: problem.stamp.map(|stamp| stamp.version),
                    detail: problem.detail,
                }
            }
        }
    }
}
