//! Metrics of writes that wait for replicas.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

/// Shows a count that is kept elsewhere.
struct ConfirmationMetrics<C>(C);

/// Adds the count of writes that too few replicas had in time to a registry.
pub fn register_confirmations(
    registry: &mut Registry,
    unconfirmed: impl Fn() -> u64 + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(ConfirmationMetrics(unconfirmed)));
}

impl<C: Fn() -> u64 + Send + Sync + 'static> Collector for ConfirmationMetrics<C> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (name, help) = (
            "store_unconfirmed_writes",
            "Writes that fewer replicas of Redis had in time than they wait for",
        );
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new((self.0)()).encode(encoder)
    }
}

impl<C> fmt::Debug for ConfirmationMetrics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfirmationMetrics")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_count_is_shown_as_it_is_when_it_is_asked_for() {
        let mut registry = Registry::default();
        register_confirmations(registry.sub_registry_with_prefix("threadkeep"), || 3);

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        let line = "threadkeep_store_unconfirmed_writes_total 3\n";
        assert!(text.contains(line), "{text}");
    }
}
