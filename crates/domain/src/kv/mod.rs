//! Entries and their namespaces.

pub(super) mod content;
pub(super) mod entry_key;
pub(super) mod lifetime;
pub(super) mod namespace;
