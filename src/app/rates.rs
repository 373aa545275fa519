//! The stores behind limits on how often clients write.

use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::config::Settings;
use crate::service::rates::{LimitedScopes, LimitedStore, RateGate};
use crate::store::{Backend, Scopes, Store};
use crate::telemetry::register_rates;

/// Puts a gate before threads and scopes, which counts in the same back end.
pub(super) fn limited(
    settings: &Settings,
    backend: &Arc<dyn Backend>,
    store: Arc<dyn Store>,
    registry: &mut Registry,
) -> (Arc<dyn Store>, Arc<dyn Scopes>) {
    let gate = RateGate::new(
        Arc::clone(backend) as _,
        Arc::clone(&store),
        settings.rates,
        settings.store.timeout,
    );
    register_rates(registry, gate.counters());
    let scopes = LimitedScopes::new(Arc::clone(backend) as _, gate.clone());
    (Arc::new(LimitedStore::new(store, gate)), Arc::new(scopes))
}
