//! Metrics that are computed from the values of other modules at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

struct Current<F>(F);

/// Registers metrics that `encode` computes at each scrape.
pub(super) fn register<F>(registry: &mut Registry, encode: F)
where
    F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
{
    registry.register_collector(Box::new(Current(encode)));
}

pub(super) fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    number: u64,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(number).encode(family)
}

pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    number: impl EncodeGaugeValue,
) -> fmt::Result {
    let family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    ConstGauge::new(number).encode(family)
}

pub(super) fn counters<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    numbers: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, number) in numbers {
        ConstCounter::new(number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

pub(super) fn gauges<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    numbers: impl IntoIterator<Item = (L, impl EncodeGaugeValue)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, number) in numbers {
        ConstGauge::new(number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Adds a label to each number. The name of the label is `label`, and its value is the string in each pair.
pub(super) fn by<'a, N, const COUNT: usize>(
    label: &'a str,
    numbers: [(&'a str, N); COUNT],
) -> [([(&'a str, &'a str); 1], N); COUNT] {
    numbers.map(|(value, number)| ([(label, value)], number))
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
