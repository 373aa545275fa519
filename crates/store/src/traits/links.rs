/// A snapshot of the connections behind a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Links {
    /// Number of servers with an open circuit breaker. Calls to these servers fail immediately.
    pub open: u64,
    /// Number of times that a circuit has opened.
    pub opened: u64,
    /// Calls rejected because the circuit was open.
    pub refused_open: u64,
    /// Calls rejected because the queue for permits was full.
    pub refused_full: u64,
    /// Calls rejected because they got no permit before the deadline.
    pub refused_late: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Calls that are waiting for a permit.
    pub waiting: u64,
    /// Writes that too few replicas confirmed in time.
    pub unconfirmed: u64,
}
