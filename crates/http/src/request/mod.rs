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
mod invalid;
pub(super) mod json;
pub(super) mod json_body;
pub(super) mod key_path;
pub(super) mod query;
pub(super) mod rate_subject;
pub(super) mod rights;
pub(super) mod target;
pub(super) mod thread_maker;
pub(super) mod thread_write;

pub(crate) use back_end::{AnyAcceptBackEnd, BackEnd, key_for, own};
pub(crate) use checkpoint_path::CheckpointPath;
pub(crate) use conditions::{
    OptionalIdempotencyKey, ReadConditions, Repeatable, WriteConditions, idempotency, if_match,
    turn,
};
pub(crate) use context::{About, body_of, change_context, session_of};
pub(crate) use decode::path_part;
pub(crate) use extract::{Extract, extract};
pub(crate) use invalid::invalid;
pub(crate) use json::{
    BodyFault, ByOp, CheckpointNameText, IN_BODY, IN_LIST, IN_OBJECT, List, NewOwner, OwnerText,
    RawJson, RawObject, Seconds, ThreadTtl, Time, Version, Whole, body_object,
    optional_body_object, read, read_value,
};
pub(crate) use json_body::{JsonBody, PatchBody};
pub(crate) use key_path::KeyPath;
pub(crate) use query::{
    Keys, Limit, NewThreadQuery, Nothing, Page, Parameters, Part, Query, Reading, Window, set_once,
    whole,
};
pub(crate) use rights::{is_for_back_ends, right_for};
pub(crate) use target::{Listener, StreamTarget, Target, behalf, reserves_keys, threads_for};
pub(crate) use thread_maker::ThreadMaker;
pub(crate) use thread_write::ThreadWrite;
