//! Entries and namespaces in this process' memory.

pub(super) mod spaces;
mod store;
