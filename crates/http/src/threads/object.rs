use std::time::Duration;

use actix_web::http::header::HeaderValue;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use threadkeep_domain::{Thread, ThreadId, ThreadPolicy, rfc3339};

/// A thread without its state. The times of a thread that does not exist are null.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadObject {
    id: String,
    exists: bool,
    /// Increases by 1 with each write; 0 if the thread does not exist.
    version: u64,
    /// Size of the compact JSON state in bytes.
    size_bytes: u64,
    limit_bytes: u64,
    /// The number of keys in the state.
    keys: u32,
    #[schema(value_type = Object)]
    metadata: Box<RawValue>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    #[schema(format = DateTime)]
    /// When the thread expires if it is not used again. A use within a second of the previous use might not update this
    /// time.
    expires_at: Option<String>,
    ttl_seconds: u64,
    /// The owner, if the thread has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// The signed id, which gives access to the thread. Present if the request created, moved or restored the thread.
    /// Also present in lists and in reads with an API key, unless the key is read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_id: Option<String>,
}

impl ThreadObject {
    pub(crate) fn of(id: &ThreadId, thread: &Thread, policy: &ThreadPolicy) -> Self {
        let metadata = RawValue::from_string(thread.metadata.as_str().to_owned());
        Self {
            exists: true,
            version: thread.stamp.version,
            size_bytes: thread.size_bytes,
            keys: thread.keys,
            metadata: metadata.unwrap_or_default(),
            created_at: rfc3339(thread.created_ms),
            updated_at: rfc3339(thread.updated_ms),
            expires_at: rfc3339(thread.expires_ms),
            ttl_seconds: whole_seconds(thread.ttl),
            owner: thread.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            ..Self::absent(id, policy)
        }
    }

    pub(crate) fn of_any(id: &ThreadId, thread: Option<&Thread>, policy: &ThreadPolicy) -> Self {
        match thread {
            Some(thread) => Self::of(id, thread, policy),
            None => Self::absent(id, policy),
        }
    }

    pub(crate) fn absent(id: &ThreadId, policy: &ThreadPolicy) -> Self {
        Self {
            id: id.to_string(),
            exists: false,
            version: 0,
            size_bytes: 2,
            limit_bytes: policy.max_bytes,
            keys: 0,
            metadata: RawValue::from_string("{}".into()).unwrap_or_default(),
            created_at: None,
            updated_at: None,
            expires_at: None,
            ttl_seconds: whole_seconds(policy.ttl),
            owner: None,
            signed_id: None,
        }
    }

    pub(crate) fn signed(self, signed_id: &HeaderValue) -> Self {
        Self {
            signed_id: signed_id.to_str().ok().map(str::to_owned),
            ..self
        }
    }

    pub(crate) fn signed_with(self, signed_id: Option<&HeaderValue>) -> Self {
        match signed_id {
            Some(signed_id) => self.signed(signed_id),
            None => self,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text and numbers always serialize")
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs()
}
