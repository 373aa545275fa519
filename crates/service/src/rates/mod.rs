//! Limits on how often clients write.
//!
//! All writes end in a [`Store`], in [`Scopes`] or in [`Images`], so the limits are there: [`LimitedStore`],
//! [`LimitedScopes`] and [`LimitedImages`] ask a [`RateGate`] before they forward a write. Without limits none of them
//! is used, at no cost. The writer comes with the
//! task: the [`RateSubject`], which the transport puts around the handling of a request. A request counts once for its
//! address and once for each thread or other scope that it writes to, however many steps that takes.
//!
//! [`Store`]: threadkeep_store::Store
//! [`Scopes`]: threadkeep_store::Scopes
//! [`Images`]: threadkeep_store::Images

mod counters;
mod gate;
mod images;
mod scopes;
mod store;
mod subject;

pub use counters::RateCounters;
pub use gate::RateGate;
pub use images::LimitedImages;
pub use scopes::LimitedScopes;
pub use store::LimitedStore;
pub use subject::RateSubject;
