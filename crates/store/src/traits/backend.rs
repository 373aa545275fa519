use std::sync::Arc;

use tokio::runtime::Handle;

use crate::{
    Archives, Checkpoints, EffectLedger, Erasure, EventLog, Images, Leases, Ledgers, Listings,
    Namespaces, Owners, Rates, Registry, Responses, Scopes, Store, Turns, Upkeep,
};

/// All parts of a store. Each part is a separate trait, so that a caller can depend only on the parts that it needs.
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
    + EffectLedger
    + Responses
    + Images
{
    /// Returns the back end for one worker thread. A networked store gives each worker its own connections, so that a
    /// request does not wake another OS thread, and commands of concurrent requests are pipelined.
    fn for_worker(&self) -> Arc<dyn Backend>;

    /// Returns the back end for responses. Its connections run on `runtime`, which also drives responses.
    fn for_responses(&self, runtime: Handle) -> Arc<dyn Backend>;
}
