//! All that a back end does.

use super::{Archives, EventLog, Leases, Ledgers, Registry, Store, Upkeep};

/// Threads, and all that is around them. Each part is a trait of its own, for those who need no
/// more of it.
pub trait Backend: Store + EventLog + Archives + Upkeep + Leases + Ledgers + Registry {}

impl<T: Store + EventLog + Archives + Upkeep + Leases + Ledgers + Registry> Backend for T {}
