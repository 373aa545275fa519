//! How commands reach Redis: addresses, connections, clusters, deadlines and faults.

pub(super) mod address;
mod breaker;
mod call;
mod cluster;
pub(super) mod commands;
pub(super) mod confirmation;
mod endpoint;
mod fault;
pub(super) mod fields;
pub(super) mod hash_slot;
mod limiter;
pub(super) mod link;
pub(super) mod node;
mod registry;
pub(super) mod replies;
#[cfg(feature = "tls")]
pub(super) mod tls;
pub(super) mod url;
mod wire;
