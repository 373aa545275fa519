//! Limits on how often clients write.
//!
//! All ways of writing end in a [`Store`] or in [`Scopes`], so these are what is limited:
//! [`LimitedStore`] and [`LimitedScopes`] ask a [`RateGate`] before they pass a write on. Without
//! limits neither is there, and nothing is paid. Who is writing comes with the task: the [`RateSubject`],
//! which whoever takes requests puts around their handling. A request counts once for its address and
//! once for each thread or other scope that it writes to, however many steps that takes.
//!
//! [`Store`]: crate::store::Store
//! [`Scopes`]: crate::store::Scopes

mod counters;
mod gate;
mod scopes;
mod store;
mod subject;

pub use counters::RateCounters;
pub use gate::RateGate;
pub use scopes::LimitedScopes;
pub use store::LimitedStore;
pub use subject::RateSubject;
