//! What a thread is and what its operations mean. No async, no I/O: every rule that two stores
//! must agree on lives here, and the embedded store runs it as it stands.

pub(crate) mod array;
mod content;
mod document;
mod entry_key;
mod event;
mod excerpt;
#[cfg(test)]
mod fuzz;
pub(crate) mod heap;
pub(crate) mod idempotency;
mod integer;
mod json;
mod key;
mod lifetime;
mod members;
mod merge_patch;
mod namespace;
mod operation;
mod policy;
mod rate;
mod refusal;
mod retention;
mod rfc3339;
pub mod scope;
mod signature;
mod thread;
mod thread_id;
mod three_way;
mod unescaped;
mod value;
mod write;

pub use array::{Array, CHUNK_BYTES};
pub use content::{ContentEncoding, ContentError, ContentType};
pub use document::Document;
pub use entry_key::{EntryKey, EntryKeyError};
pub use event::{
    Completed, EndReason, Event, EventId, EventIdError, EventKind, EventType, EventTypeError,
    EventTypes, MOST_KEY_BYTES_NAMED, MOST_KEYS_NAMED, Position,
};
pub use excerpt::Excerpt;
pub use idempotency::{Fingerprint, IdempotencyKey};
pub use integer::{IntegerError, add};
pub use json::{Json, JsonError, MAX_DEPTH, ObjectError};
pub use key::{Key, KeyError};
pub use lifetime::{EntryPolicy, Lifetime};
pub use members::{KeyedValues, ObjectFault, keyed_values, keyed_values_of_any_key};
pub(crate) use members::{elements, has_more_values, is_named, member, members};
pub use merge_patch::{MergePatch, Patched, merge_json};
pub use namespace::{Namespace, NamespaceError};
pub use operation::{Answer, Mismatch, Operation};
pub use policy::{BODY_MAX_BYTES, Policy, TTL_MAX, TTL_MIN};
pub use rate::{Rate, RateError, RateLimited, RateLimits, RateName};
pub use refusal::Refusal;
pub use retention::{LOG_HARD_FACTOR, Retention};
pub use rfc3339::{parse_rfc3339, rfc3339};
pub use signature::{KeyRing, KeyRingError, SignedId, SigningKey, TAG_BYTES};
pub use thread::{Life, Stamp, Thread};
pub use thread_id::{ThreadId, ThreadIdError};
pub use three_way::{Given, Sent, ThreeWay};
pub use value::{Slice, Value};
pub use write::{Expected, Guard, MetadataChange, Precondition, Tombstone, Write, Written};
