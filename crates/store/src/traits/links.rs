//! How the connections behind a store are doing.

/// Numbers for operators, as they are at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Links {
    /// Servers that are not asked, since they would not answer.
    pub open: u64,
    /// How often a server was found to be one of them.
    pub opened: u64,
    /// Calls that were not sent, as the server would not have answered.
    pub refused_open: u64,
    /// Calls that were not sent, as too many waited for their turn.
    pub refused_full: u64,
    /// Calls that were not sent, as their turn did not come in time.
    pub refused_late: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Calls that wait for their turn.
    pub waiting: u64,
    /// Writes that too few replicas had in time.
    pub unconfirmed: u64,
}
