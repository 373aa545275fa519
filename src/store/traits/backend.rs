//! All that a back end does.

use crate::store::{
    Archives, EventLog, Leases, Ledgers, Listings, Namespaces, Rates, Registry, Scopes, Store,
    Upkeep,
};

/// Threads, and all that is around them. Each part is a trait of its own, for those who need no
/// more of it.
pub trait Backend:
    Store
    + EventLog
    + Archives
    + Upkeep
    + Leases
    + Ledgers
    + Registry
    + Scopes
    + Listings
    + Namespaces
    + Rates
{
}

impl<T> Backend for T where
    T: Store
        + EventLog
        + Archives
        + Upkeep
        + Leases
        + Ledgers
        + Registry
        + Scopes
        + Listings
        + Namespaces
        + Rates
{
}
