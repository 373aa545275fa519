//! Limits on how often clients write.
//!
//! The services of threads, scopes and images ask a [`RateGate`] before each write to the store, if they have one. The
//! writer comes with the task: the [`RateSubject`], which the transport puts around the handling of a request. A request
//! counts once for its address and once for each thread or other scope that it writes to, however many steps that takes.

mod counters;
mod gate;
mod subject;

pub use counters::RateCounters;
pub use gate::RateGate;
pub use subject::RateSubject;
