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

/// Exports the state of the store's connections.
struct LinkMetrics<C>(C);

/// Adds the metrics of the store's connections to a registry, if it has any.
pub fn register_links(registry: &mut Registry, store: Arc<dyn Store>) {
    if store.links().is_some() {
        let links = move || store.links().unwrap_or_default();
        registry.register_collector(Box::new(LinkMetrics(links)));
    }
}

impl<C: Fn() -> Links + Send + Sync + 'static> Collector for LinkMetrics<C> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let links = (self.0)();
        let mut gauge = |name, help, number: u64| {
            let gauge = ConstGauge::new(number);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        let help = "Redis servers whose circuit breaker is open";
        gauge("store_breakers_open", help, links.open)?;
        let help = "Calls to Redis in flight";
        gauge("store_in_flight", help, links.in_flight)?;
        let help = "Calls to Redis that wait for a permit";
        gauge("store_waiting", help, links.waiting)?;
        let mut counter = |name, help, number: u64| {
            let counter = ConstCounter::new(number);
            counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
        };
        let help = "Times that a circuit breaker opened";
        counter("store_breaker_openings", help, links.opened)?;
        let help = "Writes that too few replicas of Redis confirmed in time";
        counter("store_unconfirmed_writes", help, links.unconfirmed)?;
        refused(&links, &mut encoder)
    }
}

fn refused(links: &Links, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Calls to Redis rejected before they were sent, by reason";
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

impl<C> fmt::Debug for LinkMetrics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkMetrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_counts_are_shown_as_they_are_when_they_are_asked_for() {
        let mut registry = Registry::default();
        let links = || Links {
            unconfirmed: 3,
            ..Links::default()
        };
        let own = registry.sub_registry_with_prefix("threadkeep");
        own.register_collector(Box::new(LinkMetrics(links)));

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        let line = "threadkeep_store_unconfirmed_writes_total 3\n";
        assert!(text.contains(line), "{text}");
    }
}
