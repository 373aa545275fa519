use std::fmt;

pub trait Levels: fmt::Debug + Send + Sync {
    fn now(&self) -> Level;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// `memory` or `redis`; empty if unknown.
    pub store: &'static str,
    pub store_bytes: Option<u64>,
    pub store_limit_bytes: Option<u64>,
    pub connections: u64,
    pub event_streams: u64,
    /// Age of the oldest event that this replica still has to deliver to an endpoint, in milliseconds.
    pub delivery_lag_ms: u64,
}
