//! Rate limits on writes.
//!
//! The services of threads, scopes and images ask a [`RateGate`] before each write to the store. The writer is a task-local
//! [`RateSubject`], which the transport sets while it handles a request. A request counts once for its address and once for
//! each thread or other scope that it writes to, regardless of the number of steps.

mod counters;
mod gate;
mod subject;

pub use counters::RateCounters;
pub use gate::RateGate;
pub use subject::RateSubject;
