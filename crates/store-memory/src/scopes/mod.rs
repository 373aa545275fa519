//! Scopes in this process' memory.

pub(super) mod entry;
mod store;
