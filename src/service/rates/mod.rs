//! Limits on how often clients write.
//!
//! All writes end in a [`Store`] or in [`Scopes`], so the limits are there: [`LimitedStore`] and [`LimitedScopes`] ask
//! a [`RateGate`] before they forward a write. Without limits neither is used, at no cost. The writer comes with the
//! task: the [`RateSubject`], which the transport puts around the handling of a request. A request counts once for its
//! address and once for each thread or other scope that it writes to, however many steps that takes.
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
