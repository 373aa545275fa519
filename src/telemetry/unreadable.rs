use std::sync::Arc;

use prometheus_client::registry::Registry;

use super::current::{counter, register};
use threadkeep_events::EventCounters;
use threadkeep_store::Store;

pub fn register_unreadable(
    registry: &mut Registry,
    store: Arc<dyn Store>,
    events: &Arc<EventCounters>,
) {
    let events = Arc::clone(events);
    register(registry, move |encoder| {
        let skipped = store.unreadable() + events.unreadable.get();
        let help = "Unreadable stored records that were skipped, counted at each read of a list";
        counter(encoder, "unreadable_records", help, skipped)
    });
}
