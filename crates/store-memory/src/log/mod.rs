pub(super) mod ledgers;
pub(super) mod names;
pub(super) mod of_shard;
mod store;
