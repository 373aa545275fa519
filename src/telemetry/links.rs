//! Metrics of the connections behind the store.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::labels::Reason;
use crate::store::{Links, Store};

/// Shows what the store tells of its connections.
#[derive(Debug)]
struct LinkMetrics(Arc<dyn Store>);

/// Adds the metrics of the store's connections to a registry, if it has any.
pub fn register_links(registry: &mut Registry, store: Arc<dyn Store>) {
    if store.links().is_some() {
        registry.register_collector(Box::new(LinkMetrics(store)));
    }
}

impl Collector for LinkMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let links = self.0.links().unwrap_or_default();
        let mut gauge = |name, help, number: u64| {
            let gauge = ConstGauge::new(number);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        let help = "Servers that the store does not ask, since they would not answer";
        gauge("store_breakers_open", help, links.open)?;
        let help = "Calls of the store that are on their way";
        gauge("store_in_flight", help, links.in_flight)?;
        let help = "Calls of the store that wait for their turn";
        gauge("store_waiting", help, links.waiting)?;
        let opened = ConstCounter::new(links.opened);
        let help = "How often a server was found not to answer";
        let name = "store_breaker_openings";
        opened.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        refused(&links, &mut encoder)
    }
}

fn refused(links: &Links, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Calls of the store that were not sent";
    let mut family = encoder.encode_descriptor("store_refused", help, None, MetricType::Counter)?;
    for (reason, count) in [
        ("open", links.refused_open),
        ("full", links.refused_full),
        ("late", links.refused_late),
    ] {
        let counter = ConstCounter::new(count);
        counter.encode(family.encode_family(&Reason { reason })?)?;
    }
    Ok(())
}
