//! Arguments and records that several kinds of data share: the counterpart of `lua/shared/`.

pub(super) mod arguments;
pub(super) mod meta;
pub(super) mod step;
