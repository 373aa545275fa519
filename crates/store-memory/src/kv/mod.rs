//! Entries and namespaces in this process' memory.

mod answers;
pub(super) mod spaces;
mod store;
