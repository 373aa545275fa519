//! Numbers that are kept elsewhere, and are asked for when the metrics are read.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// Exports what a function makes of such numbers.
struct Current<F>(F);

/// Adds metrics to a registry, which are made each time that they are read.
pub(super) fn register<F>(registry: &mut Registry, encode: F)
where
    F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
{
    registry.register_collector(Box::new(Current(encode)));
}

/// Shows a number that only grows.
pub(super) fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    number: u64,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(number).encode(family)
}

/// Shows a number that goes up and down.
pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    number: u64,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    ConstGauge::new(number).encode(family)
}

impl<F> Collector for Current<F>
where
    F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut encoder)
    }
}

impl<F> fmt::Debug for Current<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}
