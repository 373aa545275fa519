//! Defines key-value entries and their namespaces.

pub(super) mod content;
pub mod entry;
pub(super) mod entry_key;
pub(super) mod lifetime;
pub(super) mod namespace;
pub mod space;
