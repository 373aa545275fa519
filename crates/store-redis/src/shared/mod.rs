//! Arguments and records that several kinds of data share: the counterpart of `lua/shared/`.

pub(super) mod archive_names;
pub(super) mod arguments;
pub(super) mod elements;
pub(super) mod member;
pub(super) mod meta;
pub(super) mod state;
pub(super) mod step;
