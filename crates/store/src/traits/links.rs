/// A snapshot of the connections behind a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Links {
    /// Servers with an open circuit: they are not asked, because they would not answer.
    pub open: u64,
    /// How often a circuit opened.
    pub opened: u64,
    /// Calls rejected because the circuit was open.
    pub refused_open: u64,
    /// Calls rejected because the queue for permits was full.
    pub refused_full: u64,
    /// Calls rejected because no permit was granted before the deadline.
    pub refused_late: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Calls that wait for a permit.
    pub waiting: u64,
    /// Writes that too few replicas confirmed in time.
    pub unconfirmed: u64,
}
