//! The log of events in this process' memory, and its readers.

pub(super) mod ledgers;
pub(super) mod names;
pub(super) mod of_shard;
mod store;
