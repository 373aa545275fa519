//! All that a back end does.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::{
    Archives, Checkpoints, Erasure, EventLog, Images, Leases, Ledgers, Listings, Namespaces,
    Owners, Rates, Registry, Responses, Scopes, Store, Turns, Upkeep,
};

/// All parts of a store. Each part is a trait of its own, for callers that need only that one.
pub trait Backend:
    Store
    + EventLog
    + Archives
    + Checkpoints
    + Erasure
    + Upkeep
    + Leases
    + Ledgers
    + Registry
    + Scopes
    + Listings
    + Namespaces
    + Owners
    + Rates
    + Turns
    + Responses
    + Images
{
    /// The back end as one worker thread should use it: one with connections gives each worker its
    /// own, made on the worker's runtime, which saves a wake-up of another thread for each request. All
    /// that a worker does goes over it, so that commands of several requests are sent at once.
    fn for_worker(&self) -> Arc<dyn Backend>;

    /// The back end for responses, with connections of its own. The runtime that drives responses drives these too, and
    /// workers use them to read responses.
    fn for_responses(&self, runtime: Handle) -> Arc<dyn Backend>;
}
