use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::current::{by, counter, counters, gauge, register};
use threadkeep_store::{Links, Store};

pub fn register_links(registry: &mut Registry, store: Arc<dyn Store>) {
    if store.links().is_some() {
        register(registry, move |encoder| {
            show(&store.links().unwrap_or_default(), encoder)
        });
    }
}

fn show(links: &Links, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Redis servers whose circuit breaker is open";
    gauge(encoder, "store_breakers_open", help, None, links.open)?;
    let help = "Calls to Redis in flight";
    gauge(encoder, "store_in_flight", help, None, links.in_flight)?;
    let help = "Calls to Redis that wait for a permit";
    gauge(encoder, "store_waiting", help, None, links.waiting)?;
    let help = "Times that a circuit breaker opened";
    counter(encoder, "store_breaker_openings", help, links.opened)?;
    let help = "Writes that too few replicas of Redis confirmed in time";
    counter(encoder, "store_unconfirmed_writes", help, links.unconfirmed)?;
    let help = "Calls to Redis rejected before they were sent, by reason";
    let refused = [
        ("open", links.refused_open),
        ("full", links.refused_full),
        ("late", links.refused_late),
    ];
    counters(encoder, "store_rejected", help, by("reason", refused))
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_current_counts_are_encoded() {
        let mut registry = Registry::default();
        let links = || Links {
            unconfirmed: 3,
            ..Links::default()
        };
        let own = registry.sub_registry_with_prefix("threadkeep");
        register(own, move |encoder| show(&links(), encoder));

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        let line = "threadkeep_store_unconfirmed_writes_total 3\n";
        assert!(text.contains(line), "{text}");
    }
}
