//! How commands reach Redis: addresses, connections, clusters, deadlines and faults.

pub(super) mod address;
mod cluster;
pub(super) mod commands;
pub(super) mod confirmation;
pub(super) mod fields;
pub(super) mod link;
pub(super) mod node;
