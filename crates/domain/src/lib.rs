//! Defines threads, and the rules that all stores must follow for operations on threads. The crate contains no async
//! code and performs no I/O.

#![warn(missing_docs)]

mod event;
mod excerpt;
#[cfg(test)]
mod fuzz;
pub mod heap;
pub mod idempotency;
mod json;
pub mod kv;
mod members;
mod millis;
mod policy;
mod rate;
mod refusal;
pub mod response;
mod retention;
mod rfc3339;
pub mod scope;
pub mod threads;
mod three_way;
mod trace_parent;

use heap::Heap;
use json::integer;

pub use event::subject_digest;
pub use event::{
    Completed, EndReason, Event, EventId, EventIdError, EventKind, EventType, EventTypeError,
    EventTypes, NAMED_KEY_BYTES_MAX, NAMED_KEYS_MAX, Position,
};
pub use excerpt::Excerpt;
pub use idempotency::{Fingerprint, IdempotencyKey};
pub use json::array::close_array;
pub use json::array::{Array, CHUNK_BYTES};
pub use json::integer::{IntegerError, add};
pub use json::members::{KeyedValues, ObjectFault, keyed_values, keyed_values_of_any_key};
pub use json::members::{
    elements, given, has_more_values, is_named, member, member_elements, member_text, members,
    object_of, quoted, text_of,
};
pub use json::merge_patch::{MergePatch, Patched, merge_json};
pub use json::text::{Json, JsonError, MAX_DEPTH, ObjectError};
pub use json::unescaped::unescaped;
pub use json::value::{Slice, Value};
pub use kv::content::{ContentEncoding, ContentError, ContentType};
pub use kv::entry_key::{EntryKey, EntryKeyError};
pub use kv::lifetime::{EntryPolicy, Lifetime};
pub use kv::namespace::{Namespace, NamespaceError};
pub use millis::millis;
pub use policy::{BODY_MAX_BYTES, KEY_TTL_MAX, TTL_MAX, TTL_MIN, ThreadPolicy};
pub use rate::{Rate, RateError, RateLimited, RateLimits, RateName};
pub use refusal::Refusal;
pub use response::{
    CallForm, CallResult, Failure, FailureCode, Incomplete, Item, ItemCall, ItemKind, Outcome,
    PromptItem, ResponseId, ResponseIdError, ResponseLimits, Status, Usage, Window, carried, carry,
    compaction_item, is_carried, is_compaction, is_foreign_compaction, is_user_message,
    output_without_call, prompt_of, readable_item,
};
pub use retention::{LOG_HARD_FACTOR, Retention};
pub use rfc3339::{parse_rfc3339, rfc3339};
pub use threads::checkpoint::{
    CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointName, CheckpointNameError,
};
pub use threads::checkpoint_image::{CheckpointImage, CheckpointImages};
pub use threads::document::Document;
pub use threads::effects;
pub use threads::image::{AHEAD_MAX_MS, METADATA_MAX_BYTES};
pub use threads::image::{Fork, IfExists, Image, Import, Included, Origin};
pub use threads::key::{Key, KeyError};
pub use threads::named_secrets::NamedSecretError;
pub use threads::named_secrets::{NamedSecret, SECRET_BYTES, is_name, named_secrets};
pub use threads::operation::{Answer, Mismatch, Operation};
pub use threads::operation::{appends, check_depth, check_settles, settles};
pub use threads::owner::{Access, Owner, OwnerChange, OwnerError, OwnerTag};
pub use threads::reserved_keys::{ReservedKeys, ReservedKeysError};
pub use threads::signature::{KeyPrint, KeyRing, KeyRingError, SignedId, SigningKey, TAG_BYTES};
pub use threads::thread::{Life, Stamp, Thread};
pub use threads::thread_id::short_hash;
pub use threads::thread_id::{ThreadId, ThreadIdError};
pub use threads::turn::{
    Release, TakeTurn, TurnGranted, TurnHeld, TurnNumbers, TurnState, TurnToken, TurnTokenError,
};
pub use threads::write::{
    Conditions, Guard, GuardedValue, MetadataChange, Precondition, Tag, Tags, Tombstone, Write,
    Written,
};
pub use three_way::{Sent, Snapshot, ThreeWay};
pub use trace_parent::{TraceParent, TraceParentError};
