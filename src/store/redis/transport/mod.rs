//! How commands reach Redis: addresses, connections, clusters, deadlines and faults.

pub(super) mod address;
mod breaker;
mod call;
mod cluster;
pub(super) mod commands;
pub(super) mod confirmation;
mod fault;
pub(super) mod fields;
pub(super) mod hash_slot;
mod limiter;
pub(super) mod link;
pub(super) mod node;
mod parameters;
mod registry;
pub(super) mod replies;
mod wire;
