//! Namespaces and their entries.

pub(super) mod namespaces;
pub(super) mod ranking;
