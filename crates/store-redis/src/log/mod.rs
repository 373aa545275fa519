mod entries;
pub(super) mod interest;
mod ledgers;
pub(super) mod store;
