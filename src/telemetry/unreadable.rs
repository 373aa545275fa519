//! A metric of unreadable data in the store.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

use crate::events::EventCounters;
use crate::store::Store;

/// Exports the number of records that the store and readers of events have skipped.
#[derive(Debug)]
struct UnreadableMetrics {
    store: Arc<dyn Store>,
    events: Arc<EventCounters>,
}

/// Adds the metric of skipped records to a registry.
pub fn register_unreadable(
    registry: &mut Registry,
    store: Arc<dyn Store>,
    events: &Arc<EventCounters>,
) {
    let events = Arc::clone(events);
    registry.register_collector(Box::new(UnreadableMetrics { store, events }));
}

impl Collector for UnreadableMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let skipped = self.store.unreadable() + self.events.unreadable.get();
        let (name, help) = (
            "unreadable_records",
            "Unreadable stored records that were skipped, counted at each read of a list",
        );
        let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(skipped).encode(family)
    }
}
