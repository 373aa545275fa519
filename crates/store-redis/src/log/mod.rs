//! The log of events as it lies in Redis, and its readers.

mod entries;
pub(super) mod interest;
mod ledgers;
pub(super) mod store;
