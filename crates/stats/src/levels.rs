//! Numbers of this moment, which others count.

use std::fmt;

/// Numbers that a report shows as they are when it is made.
pub trait Levels: fmt::Debug + Send + Sync {
    /// The numbers now.
    fn now(&self) -> Level;
}

/// The numbers of one moment, and the kind of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// `memory` or `redis`; empty if nothing tells.
    pub store: &'static str,
    /// Memory that the embedded store takes, in bytes.
    pub store_bytes: Option<u64>,
    /// The most that it may take.
    pub store_limit_bytes: Option<u64>,
    /// Open connections of clients.
    pub connections: u64,
    /// Open streams of events.
    pub event_streams: u64,
    /// For how long the oldest event has waited that this replica has to deliver to an endpoint, in milliseconds.
    pub delivery_lag_ms: u64,
}
