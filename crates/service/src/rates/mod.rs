//! Limits the rate of writes.
//!
//! The services for threads, scopes and images consult a [`RateGate`] before each write to the store. The gate
//! identifies the writer by a task-local [`RateSubject`], which the transport sets while it handles a request. A
//! request is counted once for its client address and once for each scope to which it writes.

mod counters;
mod gate;
mod subject;

pub use counters::RateCounters;
pub use gate::RateGate;
pub use subject::RateSubject;
