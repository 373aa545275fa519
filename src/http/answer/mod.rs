//! How answers are put together.

pub(super) mod json;
pub(super) mod memory;
pub(super) mod negotiation;
pub(super) mod receipt;
