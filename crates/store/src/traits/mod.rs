//! The promises of a store, one trait for each thing that it keeps.

pub(super) mod answered;
pub(super) mod archives;
pub(super) mod backend;
pub(super) mod checkpoints;
pub(super) mod erasure;
pub(super) mod images;
pub(super) mod kv;
pub(super) mod leases;
pub(super) mod ledgers;
pub(super) mod links;
pub(super) mod listings;
pub(super) mod log;
pub(super) mod owners;
pub(super) mod rates;
pub(super) mod registry;
pub(super) mod responses;
pub(super) mod scopes;
pub(super) mod turns;
pub(super) mod upkeep;
