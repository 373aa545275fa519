pub(super) mod archive_names;
pub(super) mod arguments;
pub(super) mod elements;
pub(super) mod member;
pub(super) mod meta;
mod packed_id;
pub(super) mod state;
pub(super) mod step;

use elements::write_chunks;

pub(super) use arguments::{
    bounded_ms, encode_access, idempotency, precondition, put, trace, turn,
};
pub(super) use elements::{Header, cut, ordinal, write_plain};
pub(super) use meta::{Meta, take};
pub(super) use packed_id::unpack_id;
pub(super) use step::{Step, StepOfResponse};
