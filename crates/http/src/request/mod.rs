//! Extractors: the caller, conditions, queries and bodies of requests.

pub(super) mod back_end;
pub(super) mod body;
pub(super) mod body_memory;
pub(super) mod checkpoint_path;
pub(super) mod conditions;
pub(super) mod context;
pub(super) mod cursor;
pub(super) mod decode;
pub(super) mod early;
pub(super) mod extract;
pub(super) mod head;
pub(super) mod json;
pub(super) mod json_body;
pub(super) mod key_path;
pub(super) mod query;
pub(super) mod rate_subject;
pub(super) mod rights;
pub(super) mod target;
pub(super) mod thread_maker;
pub(super) mod thread_write;
